import { LRUCache } from 'lru-cache'
import { AppError } from '../model/errors.js'
import type { ApiOptions } from './api.js'
import type { Audit } from '../records/audit.js'
import { RouteReply, type ApiRoute, type CheckedInput } from './route.js'
import { MINUTE_MS } from '../model/time.js'

/** Changes that say nothing about who may what, or that come in great numbers. */
const QUIET: ReadonlySet<string> = new Set(['refresh', 'logout', 'readAlert', 'readAllAlerts'])

/** Fields of a body that tell what was asked for. Nothing that could be a secret is among them. */
const TOLD_FIELDS = [
  'email',
  'role',
  'is_active',
  'priority',
  'reason',
  'to',
  'severity',
  'status',
  'assignee_id',
  'application_id',
  'sources',
  'auto_register',
] as const
const TARGET_FIELDS = ['email', 'name', 'title', 'source_name'] as const

const MAX_TARGET_CHARACTERS = 300
const MAX_VALUE_CHARACTERS = 500
/** Being refused costs nothing, and the trail is kept for long: once a minute by user and operation. */
const REFUSALS = { ttl: MINUTE_MS, max: 10_000 }

/**
 * The same routes, of which those that change something record who did it, whether it succeeded or
 * not. A route that is added later is recorded without further ado.
 */
export const audited = <S>(
  routes: readonly ApiRoute<S>[],
  audit: Pick<Audit, 'record'>,
): readonly ApiRoute<S>[] =>
  routes.map((route) =>
    route.method === 'get' || QUIET.has(route.id) ? route : recorded(route, audit),
  )

const recorded = <S>(route: ApiRoute<S>, audit: Pick<Audit, 'record'>): ApiRoute<S> => ({
  ...route,
  async handle(input, services) {
    const record = (outcome: string, reply: unknown): Promise<void> => {
      const full = reply instanceof RouteReply ? reply : null
      const target = targetOf(input, full === null ? reply : full.body)
      return audit.record({
        actorId: full?.actorId ?? input.principal?.userId ?? '',
        action: route.id,
        target,
        outcome,
        ip: input.head.ip,
        detail: detailOf(input, target),
      })
    }
    try {
      const reply: unknown = await route.handle(input, services)
      await record('ok', reply)
      return reply
    } catch (error) {
      await record(error instanceof AppError ? error.code : 'internal_error', null)
      throw error
    }
  },
})

/** What instances remember together; see `state/state.ts`. */
interface Seen {
  setIfAbsent(key: string, value: string, ttlMs: number): Promise<boolean>
}

/**
 * Records users who were turned away at the door of a route, before anything of the request was looked at.
 * While `seen` is away each instance records for itself.
 */
export function recordRefusals<S>(
  audit: Pick<Audit, 'record'>,
  seen: Seen,
): NonNullable<ApiOptions<S>['onRefused']> {
  const recent = new LRUCache<string, true>(REFUSALS)
  return ({ id }, { userId }, { head, error }) => {
    const key = `${userId} ${id}`
    if (recent.has(key)) return
    recent.set(key, true)
    const target = cut(Object.values(head.params).join('/'), MAX_TARGET_CHARACTERS)
    const { ip } = head
    const entry = { actorId: userId, action: id, target, outcome: error.code, ip, detail: {} }
    void seen
      .setIfAbsent(`refused:${key}`, '1', REFUSALS.ttl)
      .catch(() => true)
      .then((isFirst) => (isFirst ? audit.record(entry) : undefined))
  }
}

/** What the path names; else what the body names; else the id of what was made. */
function targetOf({ params, body }: CheckedInput, reply: unknown): string {
  const named = Object.values(toRecord(params)).map(String).join('/')
  if (named !== '') return cut(named, MAX_TARGET_CHARACTERS)
  const given = fieldsOf(body)
  for (const field of TARGET_FIELDS) {
    const value = given[field]
    if (typeof value === 'string') return cut(value, MAX_TARGET_CHARACTERS)
  }
  const { id } = toRecord(reply)
  return typeof id === 'string' || typeof id === 'number' ? String(id) : ''
}

function detailOf({ query, body }: CheckedInput, target: string): Record<string, unknown> {
  const given = { ...toRecord(query), ...fieldsOf(body) }
  const names = [...Object.keys(toRecord(query)), ...TOLD_FIELDS]
  const told = names.filter((name) => given[name] !== undefined && given[name] !== target)
  return Object.fromEntries(told.map((name) => [name, toTold(given[name])]))
}

function toTold(value: unknown): unknown {
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return value
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return cut(text, MAX_VALUE_CHARACTERS)
}

/** Of a multipart body the text fields. */
function fieldsOf(body: unknown): Readonly<Record<string, unknown>> {
  const given = toRecord(body)
  return 'fields' in given && 'files' in given ? toRecord(given['fields']) : given
}

const toRecord = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}

/** Half a character, at the cut or from the client, becomes U+FFFD: the table takes UTF-8 only. */
const cut = (text: string, max: number): string => Buffer.from(text.slice(0, max)).toString()
