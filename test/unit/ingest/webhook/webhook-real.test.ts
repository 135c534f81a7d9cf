import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { parseScmWebhook, type ScmDelivery } from '../../../../src/ingest/webhook/webhook-events.js'
import { asPayload, fieldAt, type Payload } from '../../../support/webhooks.js'

const folder = process.env['WEBHOOKS_DIR'] ?? ''
const context = {
  nowMs: Date.UTC(2026, 10, 21),
  environment: 'production',
  maxMessageBytes: 262_144,
}
const SINGLE = new Set(['issue', 'merge_request', 'pipeline', 'build', 'tag_push', 'release'])

/** The expected outcome of a payload, computed independently: the number of events or the reason for none. */
function expected(payload: Payload): number | 'ignored' | 'invalid' {
  const kind = payload['object_kind']
  if (typeof kind !== 'string') return 'invalid'
  if (kind === 'push') return Math.max(1, commitsOf(payload).length)
  return SINGLE.has(kind) ? 1 : 'ignored'
}

function outcome(body: Uint8Array): ScmDelivery | { readonly kind: 'invalid' } {
  try {
    return parseScmWebhook(body, context)
  } catch {
    return { kind: 'invalid' }
  }
}

void test(
  'payloads that real platforms sent map to the right events',
  { skip: folder === '' ? 'set WEBHOOKS_DIR to a folder of payloads' : false },
  async (t) => {
    const files = readdirSync(folder).filter((name) => name.endsWith('.json'))
    t.ok(files.length > 0, 'the folder holds payloads')
    for (const name of files) {
      const body = readFileSync(join(folder, name))
      const payload = asPayload(JSON.parse(body.toString()))
      const got = outcome(body)
      const count = got.kind === 'events' ? got.events.length : got.kind
      t.equal(count, expected(payload), `${name} outcome`)
      if (got.kind !== 'events') continue

      const [event] = got.events
      t.equal(got.source, `scm.${pathOf(payload)}`, `${name} source`)
      const listed = {
        scm_event_type: fieldAt(payload, 'object_kind'),
        scm_event_name: fieldAt(payload, 'event_name'),
        state: fieldAt(payload, 'object_attributes.state'),
        triggered_by: fieldAt(payload, 'user.username'),
        repo_url: fieldAt(payload, 'repository.homepage'),
      }
      for (const [tag, value] of Object.entries(listed)) {
        if (value !== undefined) t.equal(event?.tags?.[tag], value, `${name} ${tag}`)
      }
      const title = fieldAt(payload, 'object_attributes.title')
      if (title !== undefined) t.equal(event?.message, title, `${name} title`)
      const arrived = event?.timestampMs === context.nowMs
      t.equal(arrived, timesOf(payload).length === 0, `${name} time`)
    }
  },
)

function commitsOf(payload: Payload): readonly unknown[] {
  const commits = payload['commits']
  return Array.isArray(commits) ? commits : []
}

function pathOf(payload: Payload): string {
  const page = String(fieldAt(payload, 'repository.homepage'))
  const path = fieldAt(payload, 'project.path_with_namespace')
  return typeof path === 'string' ? path : new URL(page).pathname.slice(1)
}

function timesOf(payload: Payload): readonly unknown[] {
  const [commit] = payload['object_kind'] === 'push' ? commitsOf(payload) : []
  return [
    commit,
    fieldAt(payload, 'object_attributes.created_at'),
    fieldAt(payload, 'build_created_at'),
    fieldAt(payload, 'created_at'),
  ].filter((time) => time !== undefined && time !== null)
}
