import { randomUUID } from 'node:crypto'

import { Type, type Static } from '@sinclair/typebox'

import type { Instance } from '../coordination/instance.js'
import { AppError } from '../model/errors.js'
import { ReadonlyTexts } from '../model/schemas.js'

/** A group of sources. */
const ApplicationDoc = Type.Object({
  id: Type.String(),
  name: Type.String(),
  environment: Type.String(),
  hosts: ReadonlyTexts,
  createdAtMs: Type.Number(),
  /** Id of the user or API token that made it. */
  createdBy: Type.Optional(Type.String()),
  /** Retention of its sources that have none of their own, in days after arrival. Absent or null: the retention of the severity. */
  retentionDays: Type.Optional(Type.Union([Type.Number(), Type.Null()])),
})
export type Application = Readonly<Static<typeof ApplicationDoc>>

export type Applications = ReturnType<typeof createApplications>

const missing = (id: string): AppError =>
  new AppError('not_found', 'there is no such application', { details: { application_id: id } })

export function createApplications({
  config,
  entities,
  withLock,
}: Pick<Instance, 'config' | 'entities' | 'withLock'>) {
  const records = entities.collection('application', ApplicationDoc, {
    most: config.applicationsPerCreator,
    nouns: 'applications of yours',
    setting: 'APPLICATIONS_PER_CREATOR',
    ownerOf: ({ createdBy = '' }) => createdBy,
  })
  const byName = (name: string): Application | undefined =>
    records.list().find((application) => application.name === name)
  return {
    /** Ordered by name. */
    list: (): readonly Application[] =>
      records.list().toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    /** @throws AppError not_found */
    require: (id: string): Application => {
      const application = records.get(id)
      if (application === null) throw missing(id)
      return application
    },
    /** @throws AppError application_name_conflict, overloaded, dependency_unavailable */
    create: (
      fields: Pick<Application, 'name' | 'environment' | 'hosts' | 'retentionDays' | 'createdBy'>,
    ): Promise<Application> =>
      withLock('application-names', 10_000, async () => {
        if (byName(fields.name) !== undefined)
          throw new AppError('application_name_conflict', 'an application of this name exists', {
            details: { name: fields.name },
          })
        const application = { id: randomUUID(), ...fields, createdAtMs: Date.now() }
        await records.put(application.id, application)
        return application
      }),
    /** Appends a source's name to the hosts. @throws AppError not_found */
    link: async (id: string, source: string): Promise<void> => {
      const linked = await records.update(id, (current) =>
        current === null || current.hosts.includes(source)
          ? current
          : { ...current, hosts: [...current.hosts, source] },
      )
      if (linked === null) throw missing(id)
    },
    /** @throws AppError not_found, dependency_unavailable */
    change: async (
      id: string,
      fields: Partial<Pick<Application, 'retentionDays'>>,
    ): Promise<Application> => {
      const changed = await records.update(id, (current) =>
        current === null ? null : { ...current, ...fields },
      )
      if (changed === null) throw missing(id)
      return changed
    },
    get: (id: string): Application | null => records.get(id),
    has: (id: string) => records.get(id) !== null,
    remove: (id: string) => records.remove(id),
    /** @returns the number of deleted applications */
    clear: () => records.clear(),
  }
}
