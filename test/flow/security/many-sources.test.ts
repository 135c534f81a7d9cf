import { test } from 'tap'
import { collect, eventually, settled, startLiveService } from '../../support/live-service.js'

test('many new sources of one key leave room for others, and are listed in pages', async (t) => {
  const service = await startLiveService(t, { SOURCES_PER_KEY: '2500' })
  const { call } = service
  const newKey = async () => {
    const json = { name: 'a key', auto_register: true }
    return (await call('POST /api/ingest-keys', { json })).body.key
  }
  const [greedy, other] = [await newKey(), await newKey()]
  const send = async (token: string, from: number, to: number) => {
    const names = Array.from(
      { length: to - from },
      (_, i) => `s${String(from + i).padStart(5, '0')}`,
    )
    const body = names.map((source) => JSON.stringify({ source, message: 'hello' })).join('\n')
    return (await collect(service, 'POST /ingest', { token, body })).body
  }
  const many = await send(greedy, 0, 3_000)
  t.match(many, { accepted: 2_500, rejected: 500 })
  t.equal(many.errors[0].code, 'key_source_limit')
  t.match(await send(other, 3_000, 3_010), { accepted: 10, rejected: 0 })
  await settled(service)

  const pages: string[][] = []
  for (let path: string | undefined = '/api/sources?limit=1000'; path !== undefined;) {
    const { status, body, headers } = await call(`GET ${path}`)
    t.equal(status, 200)
    pages.push(body.map(({ name }: { readonly name: string }) => name))
    path = /^<(.*)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1]
  }
  t.same(
    pages.map(({ length }) => length),
    [1_000, 1_000, 510],
  )
  const all = pages.flat()
  t.same(all, all.toSorted())
  t.equal(new Set(all).size, 2_510)
  t.equal((await call('GET /api/sources')).body.length, 1_000, 'a page by default')
  t.match((await call('GET /api/sources')).body[0], { name: 's00000', status: 'active' })
  t.equal((await call('GET /api/sources?cursor=x')).body.detail.code, 'invalid_cursor')
  t.equal((await call('GET /api/sources?limit=10001')).status, 422)

  await service.restart()
  t.match(await send(greedy, 4_000, 4_001), { rejected: 1 }, 'the number is kept')
  await call('DELETE /api/sources/s00000')
  await eventually(
    () => send(greedy, 4_000, 4_001),
    ({ accepted }) => accepted === 1,
  )
})
