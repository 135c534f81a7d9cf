/* The log of the transitions of rule groups, a table of ClickHouse. */

import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import { Type, type Static } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'

import type { Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'
import { backoffMs } from '../lib/backoff.js'
import { AppError } from '../model/errors.js'
import { PrioritySchema } from '../model/schemas.js'
import type { Log } from '../telemetry/log.js'

const State = Type.Union([
  Type.Literal('inactive'),
  Type.Literal('pending'),
  Type.Literal('firing'),
  Type.Literal('recovering'),
])

/** The anomaly that a transition is about. */
const LoggedFinding = Type.Object({
  title: Type.String(),
  priority: PrioritySchema,
  startedAtMs: Type.Integer(),
})
export type LoggedFinding = Readonly<Static<typeof LoggedFinding>>

/** A transition with the rule, group and counts that led to it. */
export const LoggedTransition = Type.Object({
  id: Type.String(),
  ruleId: Type.String(),
  ruleVersion: Type.Integer(),
  ruleName: Type.String(),
  severity: PrioritySchema,
  /** The names of the fields that the rule groups by, and their values. */
  groupBy: Type.Array(Type.String()),
  group: Type.Array(Type.String()),
  from: State,
  to: Type.Union([...State.anyOf, Type.Literal('resolved')]),
  atMs: Type.Integer(),
  /** The alert that it begins or belongs to; null for a group that never fired. */
  alertId: Type.Union([Type.String(), Type.Null()]),
  value: Type.Union([Type.Number(), Type.Null()]),
  q: Type.String(),
  /** For a rule of the kind `ratio`: the query of the part that is counted among the matches of `q`. */
  part: Type.Optional(Type.String()),
  /** The range of arrival times that was counted. */
  windowFromMs: Type.Integer(),
  windowToMs: Type.Integer(),
  /** When it began to fire; null for one that never fired. */
  startedAtMs: Type.Optional(Type.Union([Type.Integer(), Type.Null()])),
  runbook: Type.Optional(Type.String()),
  /** The channels of the rule, by id. */
  channels: Type.Optional(Type.Array(Type.String())),
  /** Channels that got a notice of the alert and were removed from the rule since; they still get the notice of its end. */
  formerChannels: Type.Optional(Type.Array(Type.String())),
  /** Channels that were added while the alert fires; they get a notice of it. */
  newChannels: Type.Optional(Type.Array(Type.String())),
  /** False when no notice is sent for a resolved alert. */
  tellsResolved: Type.Optional(Type.Boolean()),
  /** How long the first notice of the rule waits for others, the time between two messages, and when it is repeated (0: never). */
  waitMs: Type.Optional(Type.Integer()),
  intervalMs: Type.Optional(Type.Integer()),
  repeatMs: Type.Optional(Type.Integer()),
  /** The kind of the rule. */
  kind: Type.Optional(Type.String()),
  opens: Type.Optional(Type.Literal('incident')),
  finding: Type.Optional(LoggedFinding),
  /** The reason of a transition that the counts did not cause, such as a deleted rule. */
  reason: Type.Union([Type.String(), Type.Null()]),
  status: Type.Object({
    state: State,
    sinceMs: Type.Integer(),
    seq: Type.Integer(),
    firingSinceMs: Type.Integer(),
    firingSeq: Type.Integer(),
    flips: Type.Array(Type.Integer()),
    isFlapping: Type.Boolean(),
  }),
})
export type LoggedTransition = Readonly<Static<typeof LoggedTransition>>

const lastSql = statement<
  Record<string, never>,
  { readonly rule_id: string; readonly group_key: string; readonly doc: string }
>('alert_last_transitions')
const historySql = statement<
  {
    readonly rule_id: string
    readonly before_ms: number
    readonly before_id: string
    readonly limit: number
  },
  { readonly id: string; readonly at_ms: number; readonly doc: string }
>('alert_history')

const INSERT_TIMEOUT_MS = 20_000
const RETRY_BACKOFF = { baseMs: 200, maxMs: 10_000 }

const hexOf = (parts: readonly unknown[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex')

/** The id of a transition. Instances that decide the same transition give it the same id. */
export const transitionId = (
  rule: { readonly id: string; readonly version: number },
  group: readonly string[],
  seq: number,
): string => hexOf([rule.id, rule.version, group, seq]).slice(0, 32)

/** The id of an alert, a UUID of version 8 that is computed from the transition that began it. */
export function alertIdOf(ruleId: string, group: readonly string[], firingSeq: number): string {
  const hex = hexOf(['alert', ruleId, group, firingSeq])
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`]
  return [...parts, `a${hex.slice(17, 20)}`, hex.slice(20, 32)].join('-')
}

export type AlertLog = ReturnType<typeof createAlertLog>

export function createAlertLog(store: Pick<Store, 'query' | 'insertRows'>, log: Log) {
  return {
    /**
     * Stores transitions in one insert with a deduplication token, so that repeated attempts store
     * them once.
     *
     * @param signal ends the attempts
     */
    async append(transitions: readonly LoggedTransition[], signal: AbortSignal): Promise<void> {
      const storedAt = new Date(Math.max(...transitions.map(({ atMs }) => atMs))).toISOString()
      const rows = transitions.map((one) => ({
        rule_id: one.ruleId,
        group_key: JSON.stringify(one.group),
        seq: one.status.seq,
        id: one.id,
        at: new Date(one.atMs).toISOString(),
        stored_at: storedAt,
        doc: JSON.stringify(one),
      }))
      const token = hexOf(transitions.map(({ id }) => id))
      const settings = { insert_deduplicate: 1, insert_deduplication_token: token } as const
      for (let tries = 1; ; tries++) {
        signal.throwIfAborted()
        try {
          const options = { settings, timeoutMs: INSERT_TIMEOUT_MS, signal }
          await store.insertRows('alert_log', rows, options)
          return
        } catch (error) {
          if (!(error instanceof AppError)) throw error
          if (tries === 1) log.warn({ err: error }, 'alerts wait until ClickHouse stores them')
          await sleep(backoffMs(tries, RETRY_BACKOFF), undefined, { signal })
        }
      }
    },

    /** The last transition of each group of each rule. */
    async last(): Promise<readonly LoggedTransition[]> {
      const rows = await store.query(lastSql, {}, { timeoutMs: 60_000 })
      return rows.flatMap(({ doc }) => parseTransition(doc))
    },

    /** Transitions of a rule before one, newest first. */
    async history(
      ruleId: string,
      before: readonly [atMs: number, id: string] | null,
      limit: number,
    ): Promise<readonly LoggedTransition[]> {
      const [beforeMs, beforeId] = before ?? [Number.MAX_SAFE_INTEGER, '']
      const params = { rule_id: ruleId, before_ms: beforeMs, before_id: beforeId, limit }
      return (await store.query(historySql, params)).flatMap(({ doc }) => parseTransition(doc))
    },
  }
}

export function parseTransition(doc: string): readonly LoggedTransition[] {
  const value: unknown = JSON.parse(doc)
  return Value.Check(LoggedTransition, value) ? [value] : []
}
