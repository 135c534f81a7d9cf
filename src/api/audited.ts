import { LRUCache } from 'lru-cache'
import { AppError } from '../model/errors.js'
import type { ApiOptions } from './api.js'
import type { State } from '../coordination/state.js'
import type { Audit } from '../records/audit.js'
import { RouteReply, type ApiRoute, type CheckedInput } from './route.js'
import { MINUTE_MS } from '../model/time.js'

/** Frequent operations that change no rights and no data worth auditing. */
const UNRECORDED: ReadonlySet<string> = new Set(['refresh', 'logout', 'readAlert', 'readAllAlerts'])

/** Logins that a browser makes by opening an address. */
const RECORDED_LOGINS: ReadonlySet<string> = new Set(['finishOidc'])

/** Fields of a body that are recorded; none of them can hold a secret. */
const RECORDED_FIELDS = [
  'email',
  'role',
  'is_active',
  'temporary',
  'priority',
  'reason',
  'to',
  'severity',
  'status',
  'assignee_id',
  'application_id',
  'retention_days',
  'sources',
  'expires_at',
  'auto_register',
  'default_source',
  'matchers',
  'starts_at',
  'ends_at',
  'q',
  'enabled',
] as const
const TARGET_FIELDS = ['email', 'name', 'title', 'source_name'] as const

const MAX_TARGET_CHARACTERS = 300
const MAX_VALUE_CHARACTERS = 500
/**
 * Refusals are recorded once a minute, because a client can cause any number of them and the audit
 * trail is kept for 400 days.
 */
const REFUSALS = { ttl: MINUTE_MS, max: 10_000 }

/** Reads that are recorded: lists of what others sent and did, and exports of events. */
const RECORDED_READS: ReadonlySet<string> = new Set([
  'listDeadLetters',
  'listAudit',
  'exportEvents',
])
/** A reading is recorded once a minute, because a page that shows a list refreshes it. */
const READS = { ttl: MINUTE_MS, max: 10_000 }
/** The most recorded readings of a user and operation, so that a user who changes the query each time cannot fill the trail. */
const READS_PER_MINUTE = 30

/**
 * Returns the same routes, which record the user, the operation and its outcome if they change
 * something or read certain lists.
 */
export const audited = (
  routes: readonly ApiRoute[],
  audit: Pick<Audit, 'record'>,
): readonly ApiRoute[] =>
  routes.map((route) => {
    if (RECORDED_READS.has(route.id)) return recordedRead(route, audit)
    const isRead = route.method === 'get' && !RECORDED_LOGINS.has(route.id)
    return isRead || UNRECORDED.has(route.id) ? route : recorded(route, audit)
  })

/** Records the first page of a list, once a minute for each user and query. Later pages belong to the same reading. */
function recordedRead(route: ApiRoute, audit: Pick<Audit, 'record'>): ApiRoute {
  const recent = new LRUCache<string, true>(READS)
  const counts = new LRUCache<string, number>({ ...READS, noUpdateTTL: true })
  return {
    ...route,
    async handle(input, services) {
      const reply: unknown = await route.handle(input, services)
      const actorId = input.principal?.userId ?? ''
      const { cursor, ...filters } = toRecord(input.query)
      const question = `${actorId} ${JSON.stringify(filters)}`
      const count = counts.get(actorId) ?? 0
      if (cursor !== undefined || recent.has(question) || count >= READS_PER_MINUTE) return reply
      recent.set(question, true)
      counts.set(actorId, count + 1)
      const detail = detailOf({ query: filters, body: null }, '')
      const entry = { actorId, action: route.id, target: '', outcome: 'ok', detail }
      void audit.record({ ...entry, ip: input.head.ip })
      return reply
    },
  }
}

const recorded = (route: ApiRoute, audit: Pick<Audit, 'record'>): ApiRoute => ({
  ...route,
  async handle(input, services) {
    const record = (outcome: string, reply: unknown): Promise<void> => {
      const full = reply instanceof RouteReply ? reply : null
      const id = idOf(full === null ? reply : full.body)
      const target = targetOf(input, id)
      // Later records name the created one by its id.
      const isNamed = id === '' || target.split('/').includes(id)
      return audit.record({
        actorId: full?.actorId ?? input.principal?.userId ?? '',
        action: route.id,
        target,
        outcome,
        ip: input.head.ip,
        detail: { ...detailOf(input, target), ...(isNamed ? {} : { id }) },
      })
    }
    try {
      const reply: unknown = await route.handle(input, services)
      await record(reply instanceof RouteReply ? (reply.outcome ?? 'ok') : 'ok', reply)
      return reply
    } catch (error) {
      await record(error instanceof AppError ? error.code : 'internal_error', null)
      throw error
    }
  },
})

/**
 * Records the users whose role or origin did not suffice for a route, once a minute for each user and
 * operation over all instances. While the shared state does not answer, each instance records for itself.
 */
export function recordRefusals(
  audit: Pick<Audit, 'record'>,
  state: Pick<State, 'setIfAbsent'>,
): NonNullable<ApiOptions['onRefused']> {
  const recent = new LRUCache<string, true>(REFUSALS)
  return ({ id }, { userId }, { head, error }) => {
    const key = `${userId} ${id}`
    if (recent.has(key)) return
    recent.set(key, true)
    const target = cut(Object.values(head.params).join('/'), MAX_TARGET_CHARACTERS)
    const { ip } = head
    const entry = { actorId: userId, action: id, target, outcome: error.code, ip, detail: {} }
    void state
      .setIfAbsent(`refused:${key}`, '1', REFUSALS.ttl)
      .catch(() => true)
      .then((isFirst) => (isFirst ? audit.record(entry) : undefined))
  }
}

/** The target is named by the path, else by the body, else by the id of the created record. */
function targetOf({ params, body }: CheckedInput, id: string): string {
  const named = Object.values(toRecord(params)).map(String).join('/')
  if (named !== '') return cut(named, MAX_TARGET_CHARACTERS)
  const given = fieldsOf(body)
  for (const field of TARGET_FIELDS) {
    const value = given[field]
    if (typeof value === 'string') return cut(value, MAX_TARGET_CHARACTERS)
  }
  return id
}

/** The id of the record in a reply; '' for none. */
function idOf(reply: unknown): string {
  const { id } = toRecord(reply)
  return typeof id === 'string' || typeof id === 'number' ? String(id) : ''
}

function detailOf(
  { query, body }: Pick<CheckedInput, 'query' | 'body'>,
  target: string,
): Record<string, unknown> {
  const given = { ...toRecord(query), ...fieldsOf(body) }
  const names = [...Object.keys(toRecord(query)), ...RECORDED_FIELDS]
  const shown = names.filter((name) => given[name] !== undefined && given[name] !== target)
  return Object.fromEntries(shown.map((name) => [name, toRecordedValue(given[name])]))
}

function toRecordedValue(value: unknown): unknown {
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return value
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return cut(text, MAX_VALUE_CHARACTERS)
}

/** The fields of a JSON body, or the text fields of a multipart body. */
function fieldsOf(body: unknown): Readonly<Record<string, unknown>> {
  const given = toRecord(body)
  return 'fields' in given && 'files' in given ? toRecord(given['fields']) : given
}

const toRecord = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}

/** Replaces lone surrogates by U+FFFD, because ClickHouse stores text as UTF-8, which has none. */
const cut = (text: string, max: number): string => Buffer.from(text.slice(0, max)).toString()
