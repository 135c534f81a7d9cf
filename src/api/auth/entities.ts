import type { Collection } from '../../coordination/collection.js'

/** The part of a collection that users, sessions and ingest keys use. */
export type Entities<T extends object> = Pick<
  Collection<T>,
  'get' | 'list' | 'put' | 'update' | 'remove'
>
