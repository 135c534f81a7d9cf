import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'tap'
import type { ListenerBody } from '../../../../src/ingest/listener.js'
import { Intake, type Sender } from '../../../../src/ingest/listeners/intake.js'
import { FramedSession } from '../../../../src/ingest/listeners/session.js'
import { HeldBytes, openTcp } from '../../../../src/ingest/listeners/tcp.js'
import { DelimitedFraming } from '../../../../src/ingest/protocols/delimited.js'
import { overloaded } from '../../../../src/ingest/refusals.js'
import { createLog } from '../../../../src/telemetry/log.js'

const key = { id: 'k', sources: null, autoRegister: true, defaultSource: null }
const RESULT = {
  received: 1,
  accepted: 1,
  rejected: 0,
  dropped: 0,
  bytes: 4,
  ms: 0,
  errors: [],
  sources: [],
  ids: [],
  span: null,
  refusal: null,
  reply: null,
}

/** A pipeline that stores what it gets, and refuses some when 200 are stored. */
function pipelineOf(refusals: number) {
  const stored: string[] = []
  const found = { running: 0, most: 0 }
  return {
    stored,
    found,
    listeners: {
      key: () => key,
      hasRoom: () => true,
      submit: async ({ bytes }: ListenerBody) => {
        found.running++
        found.most = Math.max(found.most, found.running)
        await sleep(0)
        found.running--
        if (stored.length === 200 && refusals-- > 0) throw overloaded()
        stored.push(Buffer.from(bytes).toString())
        return RESULT
      },
    },
  }
}

function sender(id: string): { sender: Sender; paused: boolean[] } {
  const paused: boolean[] = []
  return { paused, sender: { id, network: id, pause: (isPaused) => paused.push(isPaused) } }
}

const batch = (text: string): ListenerBody => ({
  protocol: 'forward',
  format: 'forward/message',
  bytes: Buffer.from(text),
})

void test('a flood of small batches is stored in order, few at a time, and stops its reading', async (t) => {
  const { stored, found, listeners } = pipelineOf(3)
  const full: boolean[] = []
  const intake = new Intake({
    listeners,
    onFull: (isFull) => full.push(isFull),
    onError: (error) => t.fail(String(error)),
  })
  const flood = sender('flood')
  const beside = sender('beside')
  const all = Array.from({ length: 14_000 }, (_, no) => intake.submit(batch(`${no}`), flood.sender))
  t.same(flood.paused, [true], 'tiny batches count too')
  await intake.submit(batch('beside'), beside.sender)
  t.ok(stored.length < 200, `another sender waits for ${stored.length} of them`)
  t.same([beside.paused, full], [[], []], 'and is read on')
  await Promise.all(all)
  t.ok(found.most <= 64, `${found.most} at once`)
  t.equal(new Set(stored).size, 14_001)
  t.same(flood.paused, [true, false])
  t.equal(intake.bytes, 0)
  const late = stored.filter((no, i) => Math.abs(Number(no) - i) > 64)
  t.same(late, [], 'a batch that was refused keeps its place')
})

void test('a network that has used up its share of the pipeline holds up no other', async (t) => {
  const { stored, listeners } = pipelineOf(0)
  let hasRoom = false
  const intake = new Intake({
    listeners: { ...listeners, hasRoom: (_bytes, network) => network !== 'flood' || hasRoom },
    onFull: () => t.fail('it is not full'),
    onError: (error) => t.fail(String(error)),
  })
  const flood = ['a', 'b'].map((text) => intake.submit(batch(text), sender('flood').sender))
  await intake.submit(batch('beside'), sender('beside').sender)
  t.same(stored, ['beside'])
  hasRoom = true
  await Promise.all(flood)
  t.same(stored, ['beside', 'a', 'b'])
})

void test('when many senders together have too much, none is read', async (t) => {
  const full: boolean[] = []
  const { listeners } = pipelineOf(0)
  const intake = new Intake({
    listeners,
    onFull: (isFull) => full.push(isFull),
    onError: (error) => t.fail(String(error)),
  })
  const mebibyte = 'x'.repeat(1024 * 1024)
  const all = Array.from({ length: 80 }, (_, no) =>
    intake.submit(batch(mebibyte), sender(`${no}`).sender),
  )
  t.same(full, [true])
  await Promise.all(all)
  t.same(full, [true, false])
})

void test('of two connections the one that floods is read no further', async (t) => {
  const { stored, listeners } = pipelineOf(0)
  const intake = new Intake({
    listeners: {
      ...listeners,
      submit: async (body) => {
        if (body.bytes.length > 1000) await sleep(500)
        return await listeners.submit(body)
      },
    },
    onFull: (isFull) => t.equal(isFull, false),
    onError: (error) => t.fail(String(error)),
  })
  const listener = await openTcp(
    {
      host: '127.0.0.1',
      log: createLog('silent'),
      isAllowed: () => true,
      pools: [{ limit: 10, open: 0 }],
      held: new HeldBytes(Infinity),
    },
    {
      setting: 'LINES_PORT',
      port: 0,
      openSession: (peer) =>
        new FramedSession(
          new DelimitedFraming(10, 100_000),
          peer,
          (bytes) => void intake.submit(batch(bytes.toString()), peer),
        ),
    },
  )
  t.teardown(async () => {
    await listener.stop()
    await listener.close()
  })
  const flood = connect(listener.port, '127.0.0.1')
  const beside = connect(listener.port, '127.0.0.1')
  const line = Buffer.alloc(50_000, 'x'.repeat(49_999).concat('\n'))
  const sent = Buffer.concat(Array.from({ length: 1200 }, () => line))
  flood.write(sent)
  await sleep(300)
  t.ok(intake.bytes < 24 * 1024 * 1024, `${intake.bytes} bytes of the flood are here`)
  beside.write('beside\n')
  const storedBytes = (): number => stored.reduce((sum, text) => sum + text.length, 0)
  const isStored = (): boolean => stored.some((text) => text.includes('beside'))
  for (let i = 0; i < 500 && !isStored(); i++) await sleep(10)
  t.ok(storedBytes() < sent.length / 2, 'the other one is stored meanwhile')
  for (let i = 0; i < 1000 && storedBytes() < sent.length; i++) await sleep(10)
  t.ok(storedBytes() > sent.length, 'and all of the flood in the end')
  flood.destroy()
  beside.destroy()
})
