import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import {
  createChain,
  endAfterStart,
  headFile,
  NO_HEAD,
  verifyTrail,
  type Head,
  type KnownHead,
  type StoredRecord,
} from '../../../src/records/audit-chain.js'
import type { AuditRecord } from '../../../src/records/audit-record.js'
import { DAY_MS } from '../../../src/model/time.js'

const NOW_MS = 1_700_000_000_000

const entry = (n: number, atMs = NOW_MS + n): AuditRecord => ({
  seq: atMs * 1_000,
  id: `entry-${n}`,
  atMs,
  actorId: 'ann',
  action: 'deleteSource',
  target: `source ${n}`,
  outcome: 'ok',
  ip: '192.0.2.7',
  detail: { role: 'admin', n },
})

/** A chain of entries, written in batches of 3. */
function written(writer: string, count: number, atMs?: (n: number) => number): StoredRecord[] {
  const chain = createChain(writer, NO_HEAD, () => undefined)
  const all: StoredRecord[] = []
  for (let n = 1; n <= count; n += 3) {
    const batch = [n, n + 1, n + 2].filter((one) => one <= count)
    all.push(...chain.link(batch.map((one) => entry(one, atMs?.(one)))))
    chain.stored()
  }
  return all
}

const inOrder = (records: readonly StoredRecord[]): StoredRecord[] =>
  records.toSorted((a, b) => a.seq - b.seq)

async function verify(records: readonly StoredRecord[], known: readonly KnownHead[] = []) {
  async function* pages() {
    for (let i = 0; i < records.length; i += 4) yield records.slice(i, i + 4)
  }
  return await verifyTrail(pages(), known, NOW_MS + DAY_MS)
}

const headOf = (writer: string, records: readonly StoredRecord[]): KnownHead => {
  const last = records.findLast(({ link }) => link?.writer === writer)
  const { number = 0, hash = '' } = last?.link ?? {}
  return { writer, number, hash, atMs: last?.atMs ?? 0, seq: last?.seq ?? 0 }
}

void test('a whole trail has no problems, with several instances that write at once', async (t) => {
  const records = inOrder([...written('one', 20), ...written('two', 7)])
  const report = await verify(records, [headOf('one', records), headOf('two', records)])
  t.strictSame(report.problems, [])
  t.equal(report.entries, 27)
  t.match(report.chains, [
    { writer: 'one', from: 1, to: 20 },
    { writer: 'two', from: 1, to: 7 },
  ])
})

void test('every change of a stored entry is found', async (t) => {
  const records = written('one', 9)
  const changes: Readonly<Record<string, Partial<StoredRecord>>> = {
    seq: { seq: 1 },
    id: { id: 'other' },
    time: { atMs: NOW_MS - DAY_MS },
    actor: { actorId: 'bob' },
    action: { action: 'login' },
    target: { target: 'source 7' },
    outcome: { outcome: 'forbidden' },
    address: { ip: '192.0.2.8' },
    detail: { detail: { role: 'viewer', n: 5 } },
  }
  for (const [what, change] of Object.entries(changes))
    for (const at of [0, 4, 8]) {
      const { problems } = await verify(records.with(at, { ...must(records[at]), ...change }))
      t.match(problems, [/was changed/], `${what} of entry ${at + 1}`)
    }
})

void test('removed, inserted, repeated and exchanged entries are found', async (t) => {
  const records = written('one', 9)
  const known = [headOf('one', records)]
  for (let at = 0; at < 9; at++) {
    const { problems } = await verify(records.toSpliced(at, 1), known)
    t.equal(problems.length, 1, `without entry ${at + 1}`)
    t.match(problems[0], at === 8 ? /entry 9, the last .* is missing/ : /are missing/)
  }
  t.match((await verify([], known)).problems, [/is missing/], 'without all')
  const forged = { ...entry(100), link: null }
  t.match((await verify(records.toSpliced(4, 0, forged))).problems, [/is in no chain/])
  const twice = records.toSpliced(4, 0, must(records[3]))
  t.match((await verify(twice)).problems, [/a second time/])
  const exchanged = records.with(3, must(records[4])).with(4, must(records[3]))
  t.ok((await verify(exchanged)).problems.length > 0)
})

void test('a chain that was computed anew does not end as the instance knows', async (t) => {
  const records = written('one', 9)
  const known = [headOf('one', records)]
  const chain = createChain('one', NO_HEAD, () => undefined)
  const anew = chain.link(records.map((record) => ({ ...record, actorId: 'bob' })))
  t.strictSame((await verify(anew)).problems, [], 'by itself it fits')
  t.match((await verify(anew, known)).problems, [/is missing/])
})

void test('entries that have left the table by their age are not missed', async (t) => {
  const records = written('one', 9, (n) => NOW_MS + n - (n < 7 ? 500 * DAY_MS : 0))
  const known = [headOf('one', records)]
  t.strictSame((await verify(records.slice(6), known)).problems, [])
  t.strictSame(
    (await verify(records.toSpliced(2, 3), known)).problems,
    [],
    'in no particular order',
  )
  t.match((await verify(records.slice(7), known)).problems, [/are missing/], 'entry 7 is young')
  t.strictSame(
    (await verify([], [{ ...must(known[0]), atMs: NOW_MS - 500 * DAY_MS }])).problems,
    [],
  )
})

void test('entries of versions without chains come before all chains, and are counted', async (t) => {
  const old = [1, 2].map((n) => ({ ...entry(n, NOW_MS - 100 + n), link: null }))
  const chained = written('one', 9)
  const report = await verify([...old, ...chained])
  t.match(report, { entries: 11, unchained: 2, problems: [] })
  t.match(await verify(chained), { entries: 9, unchained: 0 })
  const late = await verify([...chained, { ...entry(100), link: null }])
  t.match(late, { unchained: 1, problems: [/is in no chain/] })
})

void test('what could not be stored leaves no gap, and a restart continues', async (t) => {
  const kept: Head[] = []
  const chain = createChain('one', NO_HEAD, (head) => kept.push(head))
  chain.link([entry(1), entry(2)])
  const first = chain.link([entry(3)])
  chain.stored()
  t.equal(first[0]?.link?.number, 1)
  t.match(kept, [{ number: 1, hash: first[0]?.link?.hash }])
  const again = createChain('one', must(kept[0]), () => undefined)
  t.strictSame((await verify([...first, ...again.link([entry(4)])])).problems, [])
})

void test('a start goes on after the end in the table only if that has the end that was kept', (t) => {
  const at = (number: number, atMs = NOW_MS): Head => {
    return { number, hash: `hash ${number}`, atMs, seq: atMs * 1_000 }
  }
  const old = at(3, NOW_MS - 500 * DAY_MS)
  const after = (kept: Head, stored: Head, isKeptStored: boolean) =>
    endAfterStart({ kept, stored, isKeptStored }, NOW_MS)
  const goesOn = (head: Head) => ({ head, isChanged: false })
  t.strictSame(after(NO_HEAD, NO_HEAD, false), goesOn(NO_HEAD), 'the first start')
  t.strictSame(after(NO_HEAD, at(3), false), goesOn(at(3)), 'nothing was kept')
  t.strictSame(after(at(3), at(3), true), goesOn(at(3)))
  t.strictSame(after(at(3), at(5), true), goesOn(at(5)), 'it ended before it kept the end')
  t.strictSame(after(old, NO_HEAD, false), goesOn(old), 'what is old has left the table')
  t.strictSame(after(old, at(5), false), goesOn(at(5)))
  for (const stored of [NO_HEAD, at(2), { ...at(3), hash: 'anew' }, at(5)])
    t.strictSame(after(at(3), stored, false), { head: at(3), isChanged: true })
  t.end()
})

void test('the end of the chain is kept in a file of the service alone', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'chain-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  const path = join(dir, 'audit-head')
  const file = headFile(path)
  t.strictSame(file.read(), NO_HEAD)
  const head = { number: 7, hash: 'abc', atMs: NOW_MS, seq: NOW_MS * 1_000 }
  file.keep(head)
  t.strictSame(headFile(path).read(), head)
  t.equal(statSync(path).mode & 0o777, 0o600)
})

function must<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('bug: not there')
  return value
}
