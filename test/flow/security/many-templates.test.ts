import { test } from 'tap'
import { collect, eventually, settled, startLiveService } from '../../support/live-service.js'
import { INGEST_KEY } from '../../support/service.js'

const word = (n: number): string =>
  n.toString(36).replaceAll(/\d/g, (digit) => 'ghijklmnop'[Number(digit)] ?? 'q')
/** Messages of which no two are of one template. */
const distinct = (i: number): string => `${word(i * 7919)} ${word(i * 104_729)} ${word(i * 31)}`

test('random messages of many sources leave templates to new ones, and go with their sources', async (t) => {
  const service = await startLiveService(t)
  const { call } = service
  const send = async (sources: readonly string[], each: number): Promise<void> => {
    const lines = sources.flatMap((source) =>
      Array.from({ length: each }, (_, i) => JSON.stringify({ source, message: distinct(i) })),
    )
    const { body } = await collect(service, 'POST /ingest', {
      token: INGEST_KEY,
      body: lines.join('\n'),
    })
    t.match(body, { accepted: sources.length * each, rejected: 0 })
  }
  /** The distinct templates of a source's newest events. */
  const templatesOf = async (source: string): Promise<number> => {
    const { body } = await call(`GET /api/logs?source=${source}&limit=200`)
    const items: readonly { readonly template_id: string }[] = body.items
    return new Set(items.map(({ template_id: id }) => id)).size
  }
  const inUse = async (): Promise<number> => {
    const { text } = await call('GET /metrics')
    return Number(/^log_engine_templates (\d+)$/m.exec(text)?.[1])
  }

  const hostile = Array.from({ length: 40 }, (_, i) => `hostile-${i}`)
  for (let from = 0; from < hostile.length; from += 10)
    await send(hostile.slice(from, from + 10), 3_000)
  await send(['new-1'], 100)
  await settled(service)
  t.equal(await templatesOf('new-1'), 100)
  const full = await inUse()
  t.ok(full > 40_000, `${full} templates are in use`)

  await service.restart()
  await send(['new-1', 'new-2'], 100)
  await settled(service)
  t.equal(await templatesOf('new-1'), 100, 'the same after a restart')
  t.equal(await templatesOf('new-2'), 100, 'a new source after a restart')

  // Deleting a source takes two seconds, so some of them have to do.
  const before = await inUse()
  const deleted = hostile.slice(0, 8)
  for (const source of deleted) t.equal((await call(`DELETE /api/sources/${source}`)).status, 200)
  const share = 1_000
  const left = await eventually(inUse, (templates) => templates <= before - deleted.length * share)
  t.ok(left <= before - deleted.length * share, `${before} templates became ${left}`)
  await send(['new-3'], 200)
  await settled(service)
  t.equal(await templatesOf('new-3'), 200)
  await service.restart()
  t.ok((await inUse()) <= left + 200, 'nothing of them comes back')
})
