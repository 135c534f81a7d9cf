import { test } from 'tap'
import type { CanonicalEvent } from '../../../../src/model/event.js'
import { parseScmWebhook } from '../../../../src/ingest/webhook/webhook-events.js'
import { bodyOf, webhook, withFields, type Payload } from '../../../support/webhooks.js'

const nowMs = Date.UTC(2026, 10, 21, 9, 28, 19)
const context = { nowMs, environment: 'production', maxMessageBytes: 262_144 }
const page = 'https://git.example.org/plant/water/pump-control'
const sha = '77aa0b1c2d3e4f5061728394a5b6c7d8e9f00112'
const noCommit = '0'.repeat(40)

function eventsOf(payload: Payload): readonly CanonicalEvent[] {
  const delivery = parseScmWebhook(bodyOf(payload), context)
  if (delivery.kind !== 'events') throw new Error(`${delivery.objectKind} is ignored`)
  return delivery.events
}

function eventOf(payload: Payload): CanonicalEvent {
  const [event, ...more] = eventsOf(payload)
  if (event === undefined || more.length > 0) throw new Error('not exactly one event')
  return event
}

const push = { scm_event_type: 'push', scm_event_name: 'push', triggered_by: 'mlind' }
const tagPush = { scm_event_type: 'tag_push', scm_event_name: 'tag_push', triggered_by: 'mlind' }
const issue = {
  scm_event_type: 'issue',
  triggered_by: 'mlind',
  url: `${page}/-/issues/17`,
}
const mergeRequest = {
  scm_event_type: 'merge_request',
  triggered_by: 'oberg',
  url: `${page}/-/merge_requests/42`,
}
const pipeline = {
  scm_event_type: 'pipeline',
  triggered_by: 'oberg',
  url: `${page}/-/pipelines/88120`,
  pipeline_id: '88120',
  ref: 'main',
  sha,
}
const build = { scm_event_type: 'build', triggered_by: 'oberg' }
const release = { scm_event_type: 'release', url: `${page}/-/releases/v2.4.0` }

type Row = readonly [
  kind: string,
  fields: Readonly<Payload>,
  severity: string,
  message: string,
  tags: Readonly<Record<string, string>>,
]

const itemActions = (
  kind: string,
  message: string,
  tags: Readonly<Record<string, string>>,
  actions: readonly (readonly [action: string, state: string])[],
): readonly Row[] =>
  actions.map(([action, state]) => [
    kind,
    { 'object_attributes.action': action, 'object_attributes.state': state },
    'INFO',
    message,
    { ...tags, state },
  ])

const pipelineRow = (status: string, severity: string): Row => [
  'pipeline',
  { 'object_attributes.status': status },
  severity,
  `Pipeline ${status} on main (${sha})`,
  { ...pipeline, status },
]

const jobRow = (status: string, severity: string): Row => [
  'build',
  { build_status: status },
  severity,
  `Job unit tests ${status} on main`,
  build,
]

const rows: readonly Row[] = [
  ['push', { commits: [] }, 'INFO', 'Push to feature/drain without commits', push],
  ['push', { commits: [], before: noCommit }, 'INFO', 'Branch feature/drain created', push],
  ['push', { commits: [], after: noCommit }, 'INFO', 'Branch feature/drain deleted', push],
  ['tag_push', {}, 'INFO', 'Tag v2.4.0 pushed', tagPush],
  ['tag_push', { before: sha }, 'INFO', 'Tag v2.4.0 pushed', tagPush],
  ['tag_push', { before: sha, after: noCommit }, 'INFO', 'Tag v2.4.0 deleted', tagPush],
  ...itemActions('issue', 'Breaker trips at night', issue, [
    ['open', 'opened'],
    ['update', 'opened'],
    ['close', 'closed'],
    ['reopen', 'opened'],
  ]),
  ...itemActions('merge_request', 'Drain before a restart', mergeRequest, [
    ['open', 'opened'],
    ['update', 'opened'],
    ['approval', 'opened'],
    ['approved', 'opened'],
    ['unapproval', 'opened'],
    ['unapproved', 'opened'],
    ['merge', 'merged'],
    ['close', 'closed'],
    ['reopen', 'opened'],
  ]),
  pipelineRow('created', 'INFO'),
  pipelineRow('waiting_for_resource', 'INFO'),
  pipelineRow('preparing', 'INFO'),
  pipelineRow('pending', 'INFO'),
  pipelineRow('running', 'INFO'),
  pipelineRow('success', 'INFO'),
  pipelineRow('failed', 'CRITICAL'),
  pipelineRow('canceled', 'WARNING'),
  pipelineRow('skipped', 'INFO'),
  pipelineRow('manual', 'INFO'),
  pipelineRow('scheduled', 'INFO'),
  jobRow('created', 'INFO'),
  jobRow('pending', 'INFO'),
  jobRow('running', 'INFO'),
  jobRow('success', 'INFO'),
  jobRow('failed', 'ERROR'),
  jobRow('canceled', 'WARNING'),
  jobRow('skipped', 'INFO'),
  jobRow('manual', 'INFO'),
  ['release', { action: 'create' }, 'INFO', 'Release Quiet valves create', release],
  ['release', { action: 'update' }, 'INFO', 'Release Quiet valves update', release],
  ['release', { action: 'delete' }, 'INFO', 'Release Quiet valves delete', release],
]

void test('each kind and action has its severity, message and exactly its tags', async (t) => {
  for (const [kind, fields, severity, message, tags] of rows) {
    const event = eventOf(withFields(webhook(kind), fields))
    t.strictSame(
      { severity: event.severity, message: event.message, tags: event.tags },
      { severity, message, tags: { ...tags, repo_url: page } },
      `${kind} ${JSON.stringify(fields)}`,
    )
  }
})

void test('a push gives one event a commit, at the time of the commit', async (t) => {
  const [first, second, ...more] = eventsOf(webhook('push'))
  t.equal(more.length, 0)
  t.match(first, {
    timestampMs: Date.UTC(2026, 10, 20, 20, 14, 5),
    message: 'Drain before a restart',
    summary: 'Drain before a restart\n\nA pump that restarts full trips its breaker.\n',
  })
  t.strictSame(first?.tags, { ...push, repo_url: page, url: `${page}/-/commit/5b5b0b1c` })
  t.match(second, {
    timestampMs: Date.UTC(2026, 10, 20, 20, 31, 44),
    message: 'Say how long a drain takes',
    summary: 'Say how long a drain takes',
  })
  t.not(first?.dedupKey, second?.dedupKey)
})

void test('the first push of a branch gives its commits', async (t) => {
  t.equal(eventsOf(withFields(webhook('push'), { before: noCommit })).length, 2)
})

void test("a commit's message is the first line that is not blank", async (t) => {
  const shown = (message: unknown): string =>
    eventOf(withFields(webhook('push'), { commits: [{ id: 'abc', message }] })).message
  t.equal(shown('one\r\ntwo'), 'one')
  t.equal(shown('\n \n  indented \ntwo'), '  indented ')
  t.equal(shown('one\u2028still one'), 'one\u2028still one')
  t.equal(shown(''), 'Commit abc on feature/drain')
  t.equal(shown(null), 'Commit abc on feature/drain')
  const titled = withFields(webhook('push'), { commits: [{ title: 'only a title' }] })
  t.equal(eventOf(titled).message, 'only a title')
})

void test('commits that are no objects are skipped', async (t) => {
  const commits = [null, 7, 'x', [], { message: 'valid' }]
  t.equal(eventOf(withFields(webhook('push'), { commits })).message, 'valid')
  t.equal(
    eventOf(withFields(webhook('push'), { commits: [null] })).message,
    'Push to feature/drain without commits',
  )
})

void test('a push with more commits than the limit is refused', async (t) => {
  const commits = Array.from({ length: 10_001 }, (_, index) => ({ id: String(index) }))
  t.throws(() => eventsOf(withFields(webhook('push'), { commits })), {
    code: 'invalid_payload',
    details: { field: 'commits' },
  })
  t.equal(eventsOf(withFields(webhook('push'), { commits: commits.slice(1) })).length, 10_000)
})

void test('summaries contain what the message omits', async (t) => {
  const summary = (kind: string, fields: Payload = {}): string =>
    eventOf(withFields(webhook(kind), fields)).summary
  t.equal(summary('issue'), 'Only on *Tuesdays*.\n\nSee the log.')
  t.equal(summary('merge_request'), 'Closes #17')
  t.equal(summary('pipeline'), `Pipeline #88120 failed for commit ${sha}`)
  t.equal(summary('build'), `Job #555001 failed for commit ${sha} (script_failure)`)
  t.equal(
    summary('build', { build_status: 'success' }),
    `Job #555001 success for commit ${sha}`,
    'a reason is only part of a failure',
  )
  t.equal(summary('tag_push'), 'Valves open slower')
  t.equal(summary('release'), '- valves open slower\n- fewer trips')
  t.equal(summary('push', { commits: [] }), '')
})

void test('an event has the time of its object', async (t) => {
  const time = (kind: string, fields: Payload = {}): string =>
    new Date(eventOf(withFields(webhook(kind), fields)).timestampMs).toISOString()
  const arrival = new Date(nowMs).toISOString()
  t.equal(time('issue'), '2026-11-19T07:02:30.000Z', 'updated')
  t.equal(time('issue', { 'object_attributes.updated_at': null }), '2026-11-19T07:00:10.000Z')
  t.equal(time('merge_request'), '2026-11-20T21:00:00.500Z')
  t.equal(time('pipeline'), '2026-11-20T21:06:30.000Z', 'finished')
  t.equal(time('pipeline', { 'object_attributes.finished_at': null }), '2026-11-20T21:01:00.000Z')
  t.equal(time('build'), '2026-11-20T21:05:00.000Z')
  t.equal(time('build', { build_finished_at: null }), '2026-11-20T21:01:09.000Z', 'started')
  t.equal(time('release'), '2026-11-20T23:00:00.000Z')
  t.equal(time('tag_push'), arrival)
  t.equal(time('push', { commits: [] }), arrival)
  t.equal(time('push', { commits: [{ timestamp: '2026-12-24T00:00:00Z' }] }), arrival, 'far ahead')
})

void test('the common fields of all kinds are equal', async (t) => {
  const delivery = parseScmWebhook(bodyOf(webhook('issue')), { ...context, environment: 'staging' })
  t.match(delivery, {
    kind: 'events',
    source: 'scm.plant/water/pump-control',
    connector: 'gitlab',
    events: [
      {
        source: 'scm.plant/water/pump-control',
        type: 'event',
        environment: 'staging',
        host: '',
        traceId: '',
        spanId: '',
        template: '',
        dedupKey: /^sha256:[0-9a-f]{64}$/,
      },
    ],
  })
})

void test('without a title the number and the action are the message', async (t) => {
  const message = (kind: string, fields: Payload): string =>
    eventOf(withFields(webhook(kind), { 'object_attributes.title': ' ', ...fields })).message
  t.equal(message('issue', { 'object_attributes.action': 'close' }), 'Issue #17 close')
  t.equal(message('merge_request', {}), 'Merge request !42 open')
  t.equal(message('merge_request', { 'object_attributes.title': 12 }), 'Merge request !42 open')
  t.equal(
    message('merge_request', { 'object_attributes.action': undefined }),
    'Merge request !42 opened',
  )
  t.equal(message('issue', { object_attributes: {} }), 'Issue')
})

void test('a message omits what the payload lacks', async (t) => {
  const message = (kind: string, fields: Payload): string =>
    eventOf(withFields(webhook(kind), fields)).message
  const bare = { 'object_attributes.ref': null, 'object_attributes.sha': null }
  t.equal(message('pipeline', bare), `Pipeline failed (${sha})`, 'the commit has the sha too')
  t.equal(message('pipeline', { ...bare, commit: null }), 'Pipeline failed')
  t.equal(message('build', { ref: null, build_name: null }), 'Job #555001 failed')
  t.equal(message('release', { name: '' }), 'Release v2.4.0 create')
  t.equal(message('release', { name: '', tag: null }), 'Release create')
  t.equal(message('release', { action: null }), 'Release Quiet valves')
})

void test('the project is found in all fields that may name it', async (t) => {
  const source = (fields: Payload): string => eventOf(withFields(webhook('build'), fields)).source
  const nowhere = { 'repository.homepage': null, 'repository.name': null, project_name: null }
  t.equal(source({ project: { path_with_namespace: 'a/b' } }), 'scm.a/b')
  t.equal(source({ project: { web_url: 'http://host:3000/a/b/c/?x#y' } }), 'scm.a/b/c')
  t.equal(
    source({ project: { path_with_namespace: null, web_url: 'https://[no' } }),
    'scm.plant/water/pump-control',
    'the page of the repository',
  )
  t.equal(source({ 'repository.homepage': 'git@host:x/y.git' }), 'scm.Plant/Water/pump-control')
  t.equal(source({ 'repository.homepage': 'mailto:x/y' }), 'scm.Plant/Water/pump-control')
  t.equal(source({ ...nowhere, 'repository.name': ' A /  b' }), 'scm.A/b')
  t.throws(() => source(nowhere), { code: 'invalid_payload', details: { field: 'project' } })
  t.throws(() => source({ ...nowhere, project: { web_url: 'https://host/' } }), {
    code: 'invalid_payload',
    details: { field: 'project' },
  })
})

void test('any path gives a valid source name', async (t) => {
  const source = (path: string): string =>
    eventOf(withFields(webhook('issue'), { 'project.path_with_namespace': path })).source
  t.equal(source('a'.repeat(116)), `scm.${'a'.repeat(116)}`)
  const [long, other] = [source(`${'a'.repeat(116)}b`), source(`${'a'.repeat(116)}c`)]
  t.equal(long?.length, 120)
  t.not(long, other, 'paths with the same beginning stay apart')
  t.equal(source('/a/b\u0000\u0007/'), 'scm.a/b')
  t.equal(source(`xy${'😀'.repeat(80)}`).includes('\uD83D~'), false, 'no half character')
  t.equal(source('half \uD83D'), 'scm.half \uFFFD')
})

void test('unsupported kinds are ignored, even without required fields', async (t) => {
  for (const kind of [
    'note',
    'job',
    'work_item',
    'deployment',
    'Push',
    'constructor',
    '__proto__',
  ]) {
    t.strictSame(parseScmWebhook(bodyOf({ object_kind: kind }), context), {
      kind: 'ignored',
      objectKind: kind,
    })
  }
})

void test('a missing required field is named', async (t) => {
  const refuses = (payload: unknown, field: string): void => {
    t.throws(
      () => parseScmWebhook(bodyOf(payload), context),
      { name: 'AppError', code: 'invalid_payload', message: field, details: { field } },
      `${field} of ${JSON.stringify(payload)?.slice(0, 60)}`,
    )
  }
  for (const body of [null, 1, 'push', [webhook('push')]]) refuses(body, 'body')
  for (const value of [undefined, null, '', ' ', 7, ['push'], {}]) {
    const absent = (kind: string, field: string): void =>
      refuses(withFields(webhook(kind), { [field]: value }), field)
    absent('push', 'object_kind')
    absent('push', 'ref')
    absent('tag_push', 'ref')
    absent('pipeline', 'object_attributes.status')
    absent('build', 'build_status')
    if (value === 7) continue
    absent('pipeline', 'object_attributes.id')
    absent('build', 'build_id')
    refuses(withFields(webhook('release'), { tag: value, action: value }), 'tag')
  }
  for (const value of [undefined, null, 'x', 7, []]) {
    for (const kind of ['issue', 'merge_request', 'pipeline']) {
      refuses(withFields(webhook(kind), { object_attributes: value }), 'object_attributes')
    }
  }
  refuses(withFields(webhook('push'), { project: null, repository: null }), 'project')
})

void test('a body that is no JSON is refused', async (t) => {
  for (const text of [
    '',
    ' ',
    '{',
    '{"object_kind":"push"',
    'object_kind=push',
    '{}{}',
    '\u0000',
  ]) {
    t.throws(() => parseScmWebhook(new TextEncoder().encode(text), context), {
      code: 'invalid_payload',
      details: { field: 'body' },
    })
  }
})

void test('a number too large to be one is no id', async (t) => {
  const text = JSON.stringify(webhook('build')).replace('555001', '1e999')
  t.throws(() => parseScmWebhook(new TextEncoder().encode(text), context), {
    code: 'invalid_payload',
    details: { field: 'build_id' },
  })
})

void test('a byte order mark and invalid UTF-8 are accepted', async (t) => {
  const marked = Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bodyOf(webhook('issue'))])
  t.equal(parseScmWebhook(marked, context).kind, 'events')
  const latin = Buffer.from(JSON.stringify(withFields(webhook('issue'), { x: 'é' })), 'latin1')
  t.equal(parseScmWebhook(latin, context).kind, 'events')
})

void test('texts beyond the limit are truncated between characters', async (t) => {
  const limits = { ...context, maxMessageBytes: 10 }
  const long = withFields(webhook('issue'), {
    'object_attributes.title': 'häuser😀😀',
    'object_attributes.description': '€€€€',
  })
  const delivery = parseScmWebhook(bodyOf(long), limits)
  t.match(delivery, { events: [{ message: 'häuser', summary: '€€€' }] })
  const url = `https://host/${'x'.repeat(5000)}`
  const event = eventOf(withFields(webhook('issue'), { 'object_attributes.url': url }))
  t.equal(event.tags?.['url'], url.slice(0, 2048))
})
