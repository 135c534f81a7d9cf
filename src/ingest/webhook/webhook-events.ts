import type { CanonicalEvent } from '../../model/event.js'
import { dedupKey } from './dedup-key.js'
import type { Draft } from './draft.js'
import { KINDS } from './kinds.js'
import { eventTimeMs, parseMoment } from './timestamp.js'
import { cutBytes, fieldsAt, missingField, parseBody, wordAt, type Fields } from './payload.js'
import { projectPath, sourceOf } from './project.js'

interface ScmContext {
  /** arrival, ms since 1970 */
  readonly nowMs: number
  readonly environment: string
  /** limit of a message and of a summary; longer ones are cut */
  readonly maxMessageBytes: number
}

export type ScmDelivery =
  | {
      readonly kind: 'events'
      /** `scm.<project path>`, at most 120 characters */
      readonly source: string
      readonly connector: string
      /** at least one, all of `source` */
      readonly events: readonly CanonicalEvent[]
    }
  | { readonly kind: 'ignored'; readonly objectKind: string }

/** Payloads led by `object_kind` are GitLab's dialect, whatever host they come from. */
const CONNECTOR = 'gitlab'

/**
 * Maps the body of a source-control webhook to canonical events.
 *
 * The set of tags is closed: those of the interface, a tag without a value being left out. Where a
 * kind lacks the listed field, the one of the same meaning stands in: `user_username` of a push for
 * `user.username`, the commit's or release's own `url`, the project's page for `repository.homepage`.
 *
 * @returns `ignored` for an `object_kind` that is not supported, whatever else the body lacks
 * @throws AppError invalid_payload, `details.field` naming what is missing or broken
 */
export function parseScmWebhook(body: Uint8Array, context: ScmContext): ScmDelivery {
  const payload = parseBody(body)
  const objectKind = wordAt(payload, 'object_kind') || systemHookOf(payload)
  if (objectKind === '') throw missingField('object_kind')
  const toDrafts = Object.hasOwn(KINDS, objectKind) ? KINDS[objectKind] : undefined
  if (toDrafts === undefined) return { kind: 'ignored', objectKind }
  const path = projectPath(payload)
  if (path === '') throw missingField('project')

  const origin = { path, source: sourceOf(path), objectKind, tags: commonTags(payload, objectKind) }
  const events = toDrafts(payload).map((draft) => toEvent(draft, origin, context))
  return { kind: 'events', source: origin.source, connector: CONNECTOR, events }
}

/** Hooks about the platform itself (a group was made, a key was added) name an event and no object. */
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

function toEvent(draft: Draft, origin: Origin, context: ScmContext): CanonicalEvent {
  const tags = { ...origin.tags, url: draft.url, ...draft.tags }
  return {
    timestampMs: eventTimeMs(draft.moments, context.nowMs),
    source: origin.source,
    type: 'event',
    severity: draft.severity,
    message: cutBytes(draft.message, context.maxMessageBytes),
    host: '',
    environment: context.environment,
    traceId: '',
    spanId: '',
    summary: cutBytes(draft.summary, context.maxMessageBytes),
    tags: Object.fromEntries(Object.entries(tags).filter(([, value]) => value !== '')),
    dedupKey: dedupKey([origin.path, origin.objectKind, draft.identity, sameMoment(draft.moments)]),
    template: '',
  }
}

/** The moment as the key takes it: one time written in two forms is one moment. */
function sameMoment(moments: readonly unknown[]): unknown {
  const given = moments.find((moment) => typeof moment === 'string' && moment.trim() !== '')
  return parseMoment(given) ?? given
}
