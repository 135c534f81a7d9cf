/*
 * Records that users create and replace as a whole: alert rules, channels, silences. Each change
 * makes a new version with its author.
 */

import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'

import { Type, type Static, type TSchema } from '@sinclair/typebox'

import { AppError } from '../model/errors.js'
import type { Records } from './newest-first.js'
import { pageNewestFirst, type Page, type PageQuery } from './page.js'

interface Version<F> {
  readonly version: number
  readonly updatedAtMs: number
  readonly updatedBy: string
  readonly fields: F
}

export interface Document<F> extends Version<F> {
  readonly id: string
  readonly createdAtMs: number
  /** Earlier versions, newest first. */
  readonly earlier?: readonly Version<F>[]
}

/** The schema of a stored document. */
export function DocumentOf<F extends TSchema>(fields: F) {
  const version = {
    version: Type.Integer(),
    updatedAtMs: Type.Integer(),
    updatedBy: Type.String(),
    fields,
  }
  return Type.Unsafe<Document<Static<F>>>(
    Type.Object({
      id: Type.String(),
      createdAtMs: Type.Integer(),
      ...version,
      earlier: Type.Optional(Type.Array(Type.Object(version))),
    }),
  )
}

interface DocumentsDeps<Given, Stored> {
  readonly records: Records<Document<Stored>>
  /** The name of the kind, for messages. */
  readonly noun: string
  /** The name of the id in errors. */
  readonly idName: string
  /** How many earlier versions are kept. */
  readonly keeps: number
  /** @throws AppError validation_error */
  readonly toStored: (given: Given, id: string, before: Stored | null) => Stored
  readonly nowMs?: () => number
}

export interface Documents<Given, Stored = Given> {
  readonly list: () => readonly Document<Stored>[]
  readonly find: (id: string) => Document<Stored> | null
  /** @throws AppError invalid_cursor */
  readonly page: (query: PageQuery) => Page<Document<Stored>>
  /** @throws AppError not_found */
  readonly get: (id: string) => Document<Stored>
  /** @throws AppError validation_error, overloaded */
  readonly create: (userId: string, given: Given) => Promise<Document<Stored>>
  /**
   * Replaces a document. A replacement without changes makes no version.
   *
   * @throws AppError not_found, validation_error
   */
  readonly replace: (userId: string, id: string, given: Given) => Promise<Document<Stored>>
  /** @throws AppError not_found */
  readonly remove: (id: string) => Promise<void>
}

/** The documents of one kind, held in memory and written through. Every change may reject with `dependency_unavailable`. */
export function createDocuments<Given, Stored = Given>(
  deps: DocumentsDeps<Given, Stored>,
): Documents<Given, Stored> {
  const { records, noun, idName, keeps, toStored, nowMs = Date.now } = deps
  const refuseMissing = (id: string): never => {
    throw new AppError('not_found', `there is no such ${noun}`, { details: { [idName]: id } })
  }
  const get = (id: string): Document<Stored> => records.get(id) ?? refuseMissing(id)
  const changed = (
    current: Document<Stored>,
    updatedBy: string,
    fields: Stored,
  ): Document<Stored> => {
    const { version, updatedAtMs, updatedBy: before, earlier = [] } = current
    const last = { version, updatedAtMs, updatedBy: before, fields: current.fields }
    const kept = [last, ...earlier].slice(0, keeps)
    const next = { ...current, version: version + 1, updatedAtMs: nowMs(), updatedBy, fields }
    return keeps === 0 ? next : { ...next, earlier: kept }
  }
  return {
    list: () => records.list(),
    find: (id) => records.get(id),
    page: (query) => pageNewestFirst(records.list(), query),
    get,
    async create(userId, given) {
      const id = randomUUID()
      const createdAtMs = nowMs()
      const facts = { id, version: 1, createdAtMs, updatedAtMs: createdAtMs, updatedBy: userId }
      const document = { ...facts, fields: toStored(given, id, null) }
      return (await records.update(id, () => document)) ?? document
    },
    async replace(userId, id, given) {
      get(id)
      const document = await records.update(id, (current) => {
        if (current === null) return null
        const fields = toStored(given, id, current.fields)
        return isDeepStrictEqual(current.fields, fields)
          ? current
          : changed(current, userId, fields)
      })
      return document ?? refuseMissing(id)
    },
    async remove(id) {
      if (!(await records.remove(id))) refuseMissing(id)
    },
  }
}
