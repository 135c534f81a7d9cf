import type { Severity } from '../../model/event.js'
import { pushEvents, tagPushEvents } from './push.js'
import {
  fieldsAt,
  idAt,
  isFields,
  invalidPayload,
  missingField,
  textAt,
  wordAt,
  type Fields,
  type ScmEvent,
} from './payload.js'

/**
 * The supported `object_kind` values. Each function gives at least one event.
 *
 * @throws AppError invalid_payload naming the required field that is missing
 */
export const KINDS: Readonly<Record<string, (payload: Fields) => readonly ScmEvent[]>> = {
  push: pushEvents,
  tag_push: tagPushEvents,
  issue: (payload) => [itemEvent(payload, 'Issue #')],
  merge_request: (payload) => [itemEvent(payload, 'Merge request !')],
  pipeline: (payload) => [pipelineEvent(payload)],
  build: (payload) => [jobEvent(payload)],
  release: (payload) => [releaseEvent(payload)],
}

const PIPELINE_SEVERITY: ReadonlyMap<string, Severity> = new Map([
  ['failed', 'CRITICAL'],
  ['canceled', 'WARNING'],
])
const JOB_SEVERITY: ReadonlyMap<string, Severity> = new Map([
  ['failed', 'ERROR'],
  ['canceled', 'WARNING'],
])

/** Maps an issue or a merge request. `label` is the text before its number, such as `Issue #`. */
function itemEvent(payload: Fields, label: string): ScmEvent {
  const item = payload['object_attributes']
  if (!isFields(item)) throw missingField('object_attributes')
  const action = wordAt(item, 'action')
  const state = wordAt(item, 'state')
  const iid = idAt(item, 'iid')
  const name = iid === '' ? label.slice(0, -2) : `${label}${iid}`
  return {
    severity: 'INFO',
    message: textAt(item, 'title') || words(name, action || state),
    summary: textAt(item, 'description'),
    url: wordAt(item, 'url'),
    tags: { state },
    times: [item['updated_at'], item['created_at']],
    // Times have a resolution of one second or are missing; the changes distinguish updates of one second.
    identity: [iid, idAt(item, 'id'), action, state, item['oldrev'], payload['changes']],
  }
}

function pipelineEvent(payload: Fields): ScmEvent {
  const pipeline = payload['object_attributes']
  if (!isFields(pipeline)) throw missingField('object_attributes')
  const id = required(idAt(pipeline, 'id'), 'object_attributes.id')
  const status = required(wordAt(pipeline, 'status'), 'object_attributes.status')
  const ref = wordAt(pipeline, 'ref')
  const sha = wordAt(pipeline, 'sha') || wordAt(fieldsAt(payload, 'commit'), 'id')
  return {
    severity: PIPELINE_SEVERITY.get(status) ?? 'INFO',
    message: words('Pipeline', status, ref && `on ${ref}`, sha && `(${sha})`),
    summary: words(`Pipeline #${id} ${status}`, sha && `for commit ${sha}`),
    url: wordAt(pipeline, 'url'),
    tags: { state: wordAt(pipeline, 'state'), pipeline_id: id, status, ref, sha },
    times: [
      pipeline['finished_at'],
      pipeline['updated_at'],
      pipeline['started_at'],
      pipeline['created_at'],
    ],
    identity: [id, status, sha],
  }
}

function jobEvent(payload: Fields): ScmEvent {
  const id = required(idAt(payload, 'build_id'), 'build_id')
  const status = required(wordAt(payload, 'build_status'), 'build_status')
  const ref = wordAt(payload, 'ref')
  const sha = wordAt(payload, 'sha')
  // Platforms send a reason with every status; it is meaningful for failed jobs only.
  const reason = status === 'failed' ? wordAt(payload, 'build_failure_reason') : ''
  const name = wordAt(payload, 'build_name') || `#${id}`
  return {
    severity: JOB_SEVERITY.get(status) ?? 'INFO',
    message: words('Job', name, status, ref && `on ${ref}`),
    summary: words(`Job #${id} ${status}`, sha && `for commit ${sha}`, reason && `(${reason})`),
    url: '',
    tags: {},
    times: [payload['build_finished_at'], payload['build_started_at'], payload['build_created_at']],
    identity: [id, status, sha],
  }
}

function releaseEvent(payload: Fields): ScmEvent {
  const tag = wordAt(payload, 'tag')
  const action = wordAt(payload, 'action')
  if (tag === '' && action === '')
    throw invalidPayload('tag', 'one of the fields tag and action is required')
  const description = textAt(payload, 'description')
  return {
    severity: 'INFO',
    message: words('Release', wordAt(payload, 'name') || tag, action),
    summary: description,
    url: wordAt(payload, 'url'),
    tags: {},
    times: [payload['updated_at'], payload['created_at'], payload['released_at']],
    // An update has no time of its own; the text of the release distinguishes updates.
    identity: [
      tag,
      action,
      payload['name'],
      description,
      payload['released_at'],
      payload['assets'],
    ],
  }
}

function required(value: string, field: string): string {
  if (value === '') throw missingField(field)
  return value
}

const words = (...parts: readonly string[]): string => parts.filter((part) => part !== '').join(' ')
