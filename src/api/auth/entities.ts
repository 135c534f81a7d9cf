import type { Collection } from '../../coordination/collection.js'

/** The part of a collection that users, logins and ingest keys work with. */
export type Entities<T extends object> = Pick<
  Collection<T>,
  'get' | 'list' | 'put' | 'update' | 'remove'
>
