import { test } from 'tap'
import { collect, eventually, startLiveService } from '../../support/live-service.js'

test('a replay may what the key of the record may now, and nothing else', async (t) => {
  const service = await startLiveService(t)
  const { call } = service
  const newKey = async (sources: readonly string[] | null, autoRegister: boolean) => {
    const json = { name: 'a key', sources, auto_register: autoRegister }
    return (await call('POST /api/ingest-keys', { json })).body
  }
  const send = async (key: { readonly key: string }, record: object) => {
    const { status, body } = await collect(service, 'POST /ingest', {
      token: key.key,
      body: JSON.stringify(record),
    })
    return { status, rejected: body.rejected }
  }
  const listed = async (source: string) =>
    (await call(`GET /api/monitoring/dead-letters?source=${source}`)).body.items
  const letters = (source: string) =>
    eventually(
      () => listed(source),
      (items) => items.length > 0,
    )
  const replay = async (source: string) =>
    (await call('POST /api/monitoring/dead-letters/replay', { json: { source: [source] } })).body
  const messages = async (source: string) =>
    (await call(`GET /api/logs?source=${source}`)).body.items.map(
      ({ message }: { readonly message: string }) => message,
    )

  const soon = new Date(Date.now() + 7 * 86_400_000).toISOString()
  const one = await newKey(['mine'], true)
  const victim = { source: 'victim', message: 'forged', timestamp: soon }
  t.strictSame(await send(one, victim), { status: 403, rejected: undefined })
  t.strictSame(await listed('victim'), [], "no dead letter of another's source")

  t.strictSame(await send(one, { source: 'mine', message: 'early', timestamp: soon }), {
    status: 202,
    rejected: 1,
  })
  t.equal((await letters('mine'))[0].key_id, one.id)

  const strict = await newKey(null, false)
  t.strictSame(await send(strict, { source: 'new', message: 'first' }), {
    status: 202,
    rejected: 1,
  })
  await letters('new')
  t.match(await replay('new'), { replayed: 0, failed: 1 }, 'the key may not register')
  t.equal((await letters('new'))[0].key_id, strict.id, 'rejected again, it keeps its key')
  await call('POST /api/sources', { json: { name: 'new' } })
  t.match(await replay('new'), { replayed: 1, failed: 0 })
  t.strictSame(await messages('new'), ['first'])

  await send(strict, { source: 'gone', message: 'of a deleted key' })
  await letters('gone')
  await call(`DELETE /api/ingest-keys/${strict.id}`)
  t.match(await replay('gone'), { replayed: 1, failed: 0 }, 'the source that the list shows')
  t.strictSame(await messages('gone'), ['of a deleted key'])
})
