import { randomUUID } from 'node:crypto'

import { Type, type Static } from '@sinclair/typebox'

import { AppError } from '../model/errors.js'
import { ReadonlyTexts } from '../model/schemas.js'

/** A group of sources. */
export const ApplicationDoc = Type.Object({
  id: Type.String(),
  name: Type.String(),
  environment: Type.String(),
  hosts: ReadonlyTexts,
  createdAtMs: Type.Number(),
})
export type Application = Readonly<Static<typeof ApplicationDoc>>

export interface ApplicationStorage {
  get(id: string): Application | null
  list(): readonly Application[]
  put(id: string, application: Application): Promise<unknown>
  update(
    id: string,
    change: (current: Application | null) => Application | null,
  ): Promise<Application | null>
  remove(id: string): Promise<unknown>
  clear(): Promise<number>
}

export interface Applications {
  has(id: string): boolean
  /** Ordered by name. */
  list(): readonly Application[]
  byName(name: string): Application | undefined
  /** @throws AppError not_found */
  require(id: string): Application
  /** @throws AppError application_name_conflict, dependency_unavailable */
  create(fields: Pick<Application, 'name' | 'environment' | 'hosts'>): Promise<Application>
  /** Appends a source's name to the hosts. @throws AppError not_found */
  link(id: string, source: string): Promise<unknown>
  remove(id: string): Promise<unknown>
  /** @returns how many went */
  clear(): Promise<number>
}

const missing = (id: string): AppError =>
  new AppError('not_found', 'there is no such application', { details: { application_id: id } })

/** @param withLock across all instances; `work` knows what the others have stored */
export function createApplications(
  storage: ApplicationStorage,
  withLock: <T>(key: string, ttlMs: number, work: () => Promise<T>) => Promise<T>,
): Applications {
  const byName = (name: string): Application | undefined =>
    storage.list().find((application) => application.name === name)
  return {
    list: () => storage.list().toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    byName,
    require: (id) => {
      const application = storage.get(id)
      if (application === null) throw missing(id)
      return application
    },
    create: (fields) =>
      withLock('application-names', 10_000, async () => {
        if (byName(fields.name) !== undefined)
          throw new AppError('application_name_conflict', 'an application of this name exists', {
            details: { name: fields.name },
          })
        const application = { id: randomUUID(), ...fields, createdAtMs: Date.now() }
        await storage.put(application.id, application)
        return application
      }),
    link: async (id, source) => {
      const linked = await storage.update(id, (current) =>
        current === null || current.hosts.includes(source)
          ? current
          : { ...current, hosts: [...current.hosts, source] },
      )
      if (linked === null) throw missing(id)
    },
    has: (id) => storage.get(id) !== null,
    remove: (id) => storage.remove(id),
    clear: () => storage.clear(),
  }
}
