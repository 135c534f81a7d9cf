/**
 * Speed and memory of mining, one thread, messages as bytes.
 *
 *   node build/bench/micro/mining.bench.js [FOLDER with *.log, one message a line]
 *
 * Without a folder the messages are generated. Each number is the best of many passes over small pieces, so that other
 * load on the machine has little influence.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { levelAtHead } from '../../src/templates/head-level.js'
import { TemplateMiner } from '../../src/templates/miner.js'
import { PriorityModel } from '../../src/priority/model.js'
import { hashText } from '../../src/lib/hash.js'
import { MessageBytes } from '../../src/templates/scan.js'
import { SignatureCache } from '../../src/templates/signature-cache.js'

const PIECE = 400
const PASSES = 100

interface Stream {
  readonly sources: readonly string[]
  readonly messages: readonly Uint8Array[]
  readonly names: readonly string[]
}

const encoder = new TextEncoder()
let state = 1
const random = (below: number): number => {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0
  return Math.floor(((state >>> 0) / 2 ** 32) * below)
}

const FORMS: readonly (() => string)[] = [
  () =>
    `Received block blk_${random(1e9)}${random(1e9)} of size ${random(1e8)} from /10.251.42.${random(255)}`,
  () =>
    `Failed password for invalid user u${random(90)}x from 10.0.0.${random(255)} port ${random(65_535)} ssh2`,
  () =>
    `10.11.10.1 "GET /v2/${random(1e9)}/servers/detail HTTP/1.1" status: 200 len: ${random(9000)} time: 0.${random(1e6)}`,
  () => `Running task ${random(40)}.0 in stage ${random(9)}.0 (TID ${random(9000)})`,
  () => `instruction cache parity error corrected`,
  () => `session opened for user alice by (uid=${random(2000)})`,
]

function read(folder: string | undefined): Stream {
  const files =
    folder === undefined ? [] : readdirSync(folder).filter((name) => name.endsWith('.log'))
  const rows = files.flatMap((name) =>
    readFileSync(join(folder ?? '', name), 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => [name, line] as const),
  )
  if (rows.length === 0) {
    for (let i = 0; i < 16_000; i++) rows.push([`s${i % 8}`, FORMS[random(FORMS.length)]?.() ?? ''])
  }
  for (let i = rows.length - 1; i > 0; i--) {
    const j = random(i + 1)
    const [a, b] = [rows[i], rows[j]]
    if (a !== undefined && b !== undefined) [rows[i], rows[j]] = [b, a]
  }
  return {
    names: [...new Set(rows.map(([name]) => name))],
    sources: rows.map(([name]) => name),
    messages: rows.map(([, line]) => encoder.encode(line)),
  }
}

/** Sums the best times of all pieces. @returns ns per message */
function measure(count: number, piece: (from: number, to: number) => void): number {
  const best: number[] = []
  for (let pass = 0; pass < PASSES; pass++) {
    for (let from = 0, k = 0; from < count; from += PIECE, k++) {
      const start = process.hrtime.bigint()
      piece(from, Math.min(count, from + PIECE))
      const took = Number(process.hrtime.bigint() - start)
      best[k] = Math.min(best[k] ?? Infinity, took)
    }
  }
  return best.reduce((a, b) => a + b, 0) / count
}

const report = (what: string, ns: number): void =>
  console.log(`${what.padEnd(44)} ${ns.toFixed(0).padStart(6)} ns  ${(1000 / ns).toFixed(2)} M/s`)

const stream = read(process.argv[2])
const { messages, sources } = stream
const bytes = messages.reduce((sum, message) => sum + message.length, 0)
console.log(
  `${messages.length} messages of ${(bytes / messages.length).toFixed(0)} bytes, ${stream.names.length} sources`,
)

const out = new Int32Array(2)
const seedLo = new Int32Array(messages.length)
const seedHi = new Int32Array(messages.length)
for (const [i, name] of sources.entries()) {
  hashText(name, out)
  seedLo[i] = out[0] ?? 0
  seedHi[i] = out[1] ?? 0
}
// All messages are in one buffer, as in a worker.
const buffer = new MessageBytes()
buffer.load(Buffer.concat(messages))
const ends = new Int32Array(messages.length)
let filled = 0
for (const [i, message] of messages.entries()) ends[i] = filled += message.length

const miner = new TemplateMiner()
const cache = SignatureCache.create(1 << 18)
let sink = 0
const signatureOf = (i: number): number => {
  const start = i === 0 ? 0 : (ends[i - 1] ?? 0)
  buffer.signature(start, ends[i] ?? 0, seedLo[i] ?? 0, seedHi[i] ?? 0, out)
  return cache.get(out[0] ?? 0, out[1] ?? 0)
}
report(
  'warm: scan and signature cache',
  measure(messages.length, (from, to) => {
    for (let i = from; i < to; i++) {
      let no = signatureOf(i)
      if (no === 0) {
        no = miner.resolve(sources[i] ?? '', messages[i] ?? new Uint8Array(0))
        cache.put(out[0] ?? 0, out[1] ?? 0, no)
      }
      sink ^= no
    }
  }),
)
report(
  'every message misses: scan and resolve',
  measure(messages.length, (from, to) => {
    for (let i = from; i < to; i++) {
      sink ^= signatureOf(i)
      sink ^= miner.resolve(sources[i] ?? '', messages[i] ?? new Uint8Array(0))
    }
  }),
)
const texts = messages.map((message) => Buffer.from(message).toString())
report(
  'level at the head of a text',
  measure(messages.length, (from, to) => {
    for (let i = from; i < to; i++) if (levelAtHead(texts[i] ?? '') === 'ERROR') sink++
  }),
)
const model = new PriorityModel()
for (let no = 1; no <= miner.size; no++) model.register(no, miner.textOf(no))
report(
  'priority of a row',
  measure(messages.length, (from, to) => {
    for (let i = from; i < to; i++) {
      model.assign(1 + (i % miner.size), i % 5, 1_700_000_000 + (i >> 10), 1)
      sink ^= model.priority
    }
  }),
)

/** Returns the bytes of heap and array buffers after a garbage collection; needs --expose-gc. */
function used(): number {
  globalThis.gc?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}
if (globalThis.gc === undefined) console.log('memory: run with --expose-gc')
else {
  const before = used()
  const many = Array.from({ length: 10 }, () => new TemplateMiner())
  for (const one of many)
    for (const [i, message] of messages.entries()) one.resolve(sources[i] ?? '', message)
  const each = (used() - before) / many.length / stream.names.length
  console.log(`memory: ${(each / 1024).toFixed(0)} KiB a source`)
  const beforeHostile = used()
  const hostile = new TemplateMiner()
  for (let i = 0; i < 100_000; i++) {
    const words = Array.from({ length: 8 }, () => random(1e9).toString(36).replaceAll(/\d/g, 'q'))
    hostile.resolve(`hostile-${i % 50_000}`, encoder.encode(words.join(' ')))
    hostile.resolve('one', encoder.encode(words.toReversed().join(' ')))
  }
  const held = (used() - beforeHostile) / 2 ** 20
  console.log(`memory: ${held.toFixed(0)} MiB after 200,000 random messages of 50,001 sources`)
  sink ^= many.length + hostile.size
}
if (sink === 0.5) console.log(sink)
