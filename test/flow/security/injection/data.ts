/** Hostile values in what is sent to the collector, stored, shown and asked for again. */
import { createHmac } from 'node:crypto'
import type { Test } from 'tap'
import { HOSTILE } from '../../../support/hostile.js'
import { LEAK, shown, type Injection } from '../../../support/injection.js'
import { currentKpis, openKpiSocket } from '../../../support/kpi-socket.js'
import { WEBHOOK_SECRET, collect, settled } from '../../../support/live-service.js'
import { INGEST_KEY } from '../../../support/service.js'
import { webhook } from '../../../support/webhooks.js'

// oxlint-disable typescript/no-explicit-any -- bodies and replies of many shapes

/** Walks through what senders send. */
export function walkData(t: Test, { service, all, fault }: Injection): void {
  const walked = all.routes.filter(({ id }) => id !== 'clearAll')
  let count = 0
  t.test(
    'hostile events are stored as they are, found by their names, and deleted alone',
    async (t) => {
      const isName = (text: string): boolean => text.length <= 120 && !/[\p{Cc},]/u.test(text)
      const names = HOSTILE.filter(isName)
      t.ok(names.length > 15, `${names.length} names`)
      const events = names.map((name, i) => ({
        source: name,
        message: `${name} ${i} ${HOSTILE[i]}`,
        host: name,
        environment: name.slice(0, 40),
        trace_id: name.slice(0, 60),
        summary: name,
        tags: { [name]: name, other: { [name]: [name] } },
      }))
      const lines = events.map((event) => JSON.stringify(event))
      for (const body of [lines.slice(0, 8).join('\n'), `[${lines.slice(8).join()}]`]) {
        const reply = await collect(service, 'POST /ingest', { token: INGEST_KEY, body })
        t.equal(reply.status, 202, reply.text)
        t.equal(reply.body.rejected, 0, reply.text)
      }
      await settled(service)
      for (const event of events) {
        const query = `source=${encodeURIComponent(event.source)}`
        const found = (await service.call(`GET /api/logs?${query}`)).body
        // The uploaded rows of that name are among them.
        t.ok(found.items.every((item: any) => item.source === event.source))
        const own = found.items.filter((item: any) => item.message === event.message)
        t.equal(own.length, 1, shown(event.source))
        const detail = (await service.call(`GET /api/logs/${own[0]?.id}`)).body
        for (const name of ['source', 'message', 'host', 'trace_id', 'summary'] as const)
          t.equal(detail[name], event[name], name)
        t.equal(detail.tags[event.source], event.source)
        const series = await service.call(`GET /api/logs/meta/timeseries?window=24h&${query}`)
        const { buckets } = series.body
        const counted = buckets.reduce((sum: number, bucket: any) => sum + bucket.INFO, 0)
        t.equal(counted, found.items.length, shown(event.source))
      }
      for (const id of [
        'refreshInsights',
        'kpis',
        'topSources',
        'listSources',
        'topTemplates',
        'collectors',
      ]) {
        const route = walked.find((one) => one.id === id)
        if (route !== undefined) t.equal((await all.send(route, {})).status, 200, id)
      }
      const stored = (await currentKpis(service)).unique_events
      let gone = 0
      // Each deletion waits for the running ones.
      for (const { source } of events.filter((_, i) => i % 3 === 0)) {
        const reply = await service.call(`DELETE /api/sources/${encodeURIComponent(source)}`)
        t.equal(reply.status, 200, shown(source))
        t.ok([1, 2].includes(reply.body.deleted.events), shown(source))
        gone += reply.body.deleted.events
      }
      t.equal((await currentKpis(service)).unique_events, stored - gone, 'and nothing else')
    },
  )

  t.test('the collector takes hostile fields of every kind, and hostile keys', async (t) => {
    const fields = (
      'timestamp source type severity message host environment trace_id span_id summary dedup_key tags ' +
      '@timestamp level msg service.name attributes resourceLogs'
    ).split(' ')
    const bodies = HOSTILE.flatMap((value) => [
      ...fields.map((field) => ({ source: 'walk', message: `m ${++count}`, [field]: value })),
      {
        source: 'walk',
        message: `m ${++count}`,
        [value]: value,
        tags: { [value]: { [value]: value } },
      },
    ])
    const body = bodies.map((each) => JSON.stringify(each)).join('\n')
    for (const text of [body, `[${body.replaceAll('\n', ',')}]`]) {
      const reply = await collect(service, 'POST /ingest', { token: INGEST_KEY, body: text })
      t.equal(reply.status, 202, reply.text.slice(0, 300))
      const { received, accepted, rejected, dropped } = reply.body
      t.equal(received, bodies.length)
      t.equal(received, accepted + rejected + dropped)
      t.notMatch(reply.text, LEAK)
    }
    for (const value of HOSTILE) {
      const text = Buffer.from(value.replaceAll(/[\r\n\0]/g, ' ').slice(0, 200)).toString('latin1')
      for (const headers of [{ authorization: `Bearer ${text}` }, { 'x-api-key': text }]) {
        const reply = await collect(service, 'POST /ingest', { body: '{"message":"m"}', headers })
        t.equal(reply.status, 401, shown(text))
      }
    }
    for (const kind of [
      'push',
      'merge_request',
      'issue',
      'pipeline',
      'build',
      'tag_push',
      'release',
    ]) {
      for (const value of HOSTILE) {
        const replace = (_: string, given: unknown): unknown =>
          typeof given === 'string' ? value : given
        const hostile = { ...JSON.parse(JSON.stringify(webhook(kind), replace)), object_kind: kind }
        const text = JSON.stringify(hostile)
        const signature = createHmac('sha256', WEBHOOK_SECRET).update(text).digest('hex')
        const reply = await collect(service, 'POST /webhooks/scm', {
          body: text,
          headers: { 'content-type': 'application/json', 'x-scm-token': signature },
        })
        const wrong = fault(value, reply)
        if (wrong !== null || ![202, 400].includes(reply.status))
          t.fail(wrong ?? `${reply.status}`, { what: `${kind} ${shown(value)}` })
      }
    }
    await settled(service)
  })

  t.test('a hostile token opens no WebSocket', async (t) => {
    for (const value of HOSTILE.filter((text) => text.length < 200)) {
      const socket = await openKpiSocket(service, { query: `?token=${encodeURIComponent(value)}` })
      t.equal(await socket.whenClosed(), 1008, shown(value))
      t.same(socket.texts, [])
    }
  })
}
