import { createHash } from 'node:crypto'

import type { CanonicalEvent } from '../../model/event.js'
import { KINDS } from './kinds.js'
import { eventTimeMs, parseTime } from './timestamp.js'
import {
  cutBytes,
  fieldsAt,
  missingField,
  parseBody,
  wordAt,
  type Fields,
  isFields,
  type ScmEvent,
} from './payload.js'
import { projectPath, sourceOf } from './project.js'

interface ScmContext {
  /** Time of arrival. */
  readonly nowMs: number
  readonly environment: string
  /** Limit in bytes of a message and of a summary; longer ones are truncated. */
  readonly maxMessageBytes: number
}

export type ScmDelivery =
  | {
      readonly kind: 'events'
      /** `scm.<project path>`, at most 120 characters. */
      readonly source: string
      readonly connector: string
      /** At least one event, all of `source`. */
      readonly events: readonly CanonicalEvent[]
    }
  | { readonly kind: 'ignored'; readonly objectKind: string }

/** Payloads with `object_kind` are in GitLab's format, from any host. */
const CONNECTOR = 'gitlab'

/**
 * Maps the body of a source-control webhook to canonical events.
 *
 * The set of tags is closed: those of the API's contract, without empty ones. Where a kind lacks the listed field, the
 * one with the same meaning replaces it: `user_username` of a push for `user.username`, the `url` of the commit or
 * release, the project's page for `repository.homepage`.
 *
 * @returns `ignored` for an `object_kind` that is not supported, even without required fields
 * @throws AppError invalid_payload, `details.field` naming what is missing or broken
 */
export function parseScmWebhook(body: Uint8Array, context: ScmContext): ScmDelivery {
  const payload = parseBody(body)
  const objectKind = wordAt(payload, 'object_kind') || systemHookOf(payload)
  if (objectKind === '') throw missingField('object_kind')
  const toScmEvents = Object.hasOwn(KINDS, objectKind) ? KINDS[objectKind] : undefined
  if (toScmEvents === undefined) return { kind: 'ignored', objectKind }
  const path = projectPath(payload)
  if (path === '') throw missingField('project')

  const origin = { path, source: sourceOf(path), objectKind, tags: commonTags(payload, objectKind) }
  const events = toScmEvents(payload).map((event) => toEvent(event, origin, context))
  return { kind: 'events', source: origin.source, connector: CONNECTOR, events }
}

/** System hooks, such as those for a new group or key, name an event and no object. */
function systemHookOf(payload: Fields): string {
  const event = wordAt(payload, 'event_name')
  return Object.hasOwn(KINDS, event) || Object.hasOwn(payload, 'object_kind') ? '' : event
}

interface Origin {
  readonly path: string
  readonly source: string
  readonly objectKind: string
  readonly tags: Readonly<Record<string, string>>
}

function commonTags(payload: Fields, objectKind: string): Readonly<Record<string, string>> {
  const project = fieldsAt(payload, 'project')
  return {
    scm_event_type: objectKind,
    scm_event_name: wordAt(payload, 'event_name'),
    triggered_by: wordAt(fieldsAt(payload, 'user'), 'username') || wordAt(payload, 'user_username'),
    repo_url:
      wordAt(fieldsAt(payload, 'repository'), 'homepage') ||
      wordAt(project, 'homepage') ||
      wordAt(project, 'web_url'),
  }
}

function toEvent(event: ScmEvent, origin: Origin, context: ScmContext): CanonicalEvent {
  const tags = { ...origin.tags, url: event.url, ...event.tags }
  return {
    timestampMs: eventTimeMs(event.times, context.nowMs),
    source: origin.source,
    type: 'event',
    severity: event.severity,
    message: cutBytes(event.message, context.maxMessageBytes),
    host: '',
    environment: context.environment,
    traceId: '',
    spanId: '',
    summary: cutBytes(event.summary, context.maxMessageBytes),
    tags: Object.fromEntries(Object.entries(tags).filter(([, value]) => value !== '')),
    dedupKey: dedupKey([origin.path, origin.objectKind, event.identity, comparedTime(event.times)]),
    template: '',
    exception: '',
  }
}

/** Normalises a time for the dedup key: two written forms of one time are equal. */
function comparedTime(times: readonly unknown[]): unknown {
  const given = times.find((time) => typeof time === 'string' && time.trim() !== '')
  return parseTime(given) ?? given
}

/** Deeper levels are not compared, because a body of 25 MiB may nest millions of arrays. */
const MAX_DEPTH = 32

/**
 * Hashes values to a dedup key, `sha256:<hex>`. It does not depend on the order of the keys in objects, and a missing
 * value equals null.
 */
function dedupKey(identity: readonly unknown[]): string {
  const hash = createHash('sha256')
  hash.update(JSON.stringify(sorted(identity, 0)))
  return `sha256:${hash.digest('hex')}`
}

function sorted(value: unknown, depth: number): unknown {
  if (value === undefined) return null
  if (typeof value !== 'object' || value === null) return value
  if (depth === MAX_DEPTH) return null
  if (Array.isArray(value)) return value.map((item: unknown) => sorted(item, depth + 1))
  if (!isFields(value)) return null
  // Pairs instead of an object, in which integer keys such as `1` would come first.
  const keys = Object.keys(value).sort()
  return { of: keys.map((key) => [key, sorted(value[key], depth + 1)]) }
}
