import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { createRequire } from 'node:module'
import * as fc from 'fast-check'
import t from 'tap'
import { decompress, readContentCoding, sniffCoding } from '../../../src/http/decompress.js'
import type { ContentCoding } from '../../../src/http/decompress.js'
import { HeaderBag } from '../../../src/http/request.js'
import { largestContent } from '../../../src/http/zstd.js'

const snappy = createRequire(import.meta.url)('snappy-wasm') as {
  readonly compress_raw: (data: Uint8Array) => Uint8Array
}
const snappyBlock = (plain: string) => Buffer.from(snappy.compress_raw(Buffer.from(plain)))
const bytes = (buffer: Uint8Array) => new Uint8Array(buffer)
const base64 = (text: string) => bytes(Buffer.from(text, 'base64'))
const text = (body: Uint8Array) => Buffer.from(body).toString()

// Compressed by `zstd`: a content size with a checksum, a single segment without, 3 MB of zeros.
const ZSTD_LINE = base64('KLUv/QRYyQAAeyJtZXNzYWdlIjoiaGVsbG8genN0ZCJ9ChrcoyY=')
const ZSTD_HELLO = base64('KLUv/SAYbQAAOGhlbGxvIAoBAJlLEQ==')
const ZSTD_ZEROS = base64(
  'KLUv/QRoTAAACAABAPz/ORACAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAgAQAAIAEAACABAAAzYOAAPJr9Y=',
)

t.test('every coding gives back what was compressed', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 5000 }), async (data) => {
      const forms: [ContentCoding, Buffer][] = [
        ['gzip', gzipSync(data)],
        ['deflate', deflateSync(data)],
        ['deflate', deflateRawSync(data)],
        ['br', brotliCompressSync(data)],
      ]
      for (const [coding, packed] of forms) {
        const body = await decompress(bytes(packed), coding, 5000)
        if (Buffer.compare(body, data) !== 0) return false
      }
      return true
    }),
    { numRuns: 50 },
  )
  t.equal(text(await decompress(ZSTD_LINE, 'zstd', 100)), '{"message":"hello zstd"}\n')
  t.equal(text(await decompress(ZSTD_HELLO, 'zstd', 100)), 'hello hello hello hello\n')
})

t.test('several frames, and frames of other programs between them, read as one body', async (t) => {
  const skippable = Buffer.from([0x51, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 9, 9, 9])
  const joined = bytes(Buffer.concat([ZSTD_HELLO, skippable, ZSTD_LINE]))
  const want = 'hello hello hello hello\n{"message":"hello zstd"}\n'
  t.equal(text(await decompress(joined, 'zstd', 100)), want)
})

t.test('a body that grows above the limit is refused with 413', async (t) => {
  const large = Buffer.alloc(1_000_000)
  const packed: [ContentCoding, Uint8Array<ArrayBuffer>][] = [
    ['gzip', bytes(gzipSync(large))],
    ['deflate', bytes(deflateSync(large))],
    ['br', bytes(brotliCompressSync(large))],
    ['zstd', ZSTD_ZEROS],
    ['identity', bytes(large)],
  ]
  for (const [coding, body] of packed) {
    await t.rejects(decompress(body, coding, 999_999), { code: 'body_too_large' }, coding)
  }
  t.equal((await decompress(ZSTD_ZEROS, 'zstd', 3_000_000)).byteLength, 3_000_000)
})

t.test('hostile data of the greatest size is decoded or refused, in bounded memory', async (t) => {
  const limit = 16 * 1024 * 1024
  const repeated = (unit: Buffer, tail = Buffer.alloc(0)) => {
    const count = Math.floor((limit - tail.length) / unit.length)
    return bytes(Buffer.concat([...Array.from({ length: count }, () => unit), tail]))
  }
  const frame = (...rest: number[]) => Buffer.from([0x28, 0xb5, 0x2f, 0xfd, ...rest])
  const hugeWindow = 0x98
  const cases: [string, ContentCoding, Uint8Array, number | string][] = [
    ['empty frames', 'zstd', repeated(frame(0x20, 0, 1, 0, 0)), 0],
    ['frames of one byte', 'zstd', repeated(frame(0, 0x68, 9, 0, 0, 65)), 1_677_721],
    [
      'empty blocks',
      'zstd',
      bytes(
        Buffer.concat([
          frame(0, 0x68),
          repeated(Buffer.from([0, 0, 0]), Buffer.from([1, 0, 0, 0, 0, 0, 0, 0, 0])).subarray(
            0,
            -6,
          ),
        ]),
      ),
      0,
    ],
    ['a window of 512 MB', 'zstd', bytes(frame(0, hugeWindow, 9, 0, 0, 65)), 1],
    [
      'skippable frames only',
      'zstd',
      repeated(Buffer.from([0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0])),
      'bad_request',
    ],
    [
      'a declared size of 2^60',
      'zstd',
      bytes(frame(0xe0, 0, 0, 0, 0, 0, 0, 0, 16, 9, 0, 0, 65)),
      'bad_request',
    ],
    [
      'runs of one byte',
      'zstd',
      bytes(
        Buffer.concat([
          frame(0, 0x68),
          ...Array.from({ length: 129 }, () => Buffer.from([2, 0, 16, 65])),
          Buffer.from([1, 0, 0]),
        ]),
      ),
      'body_too_large',
    ],
    ['empty members', 'gzip', repeated(gzipSync('')), 0],
    ['members of one byte', 'gzip', repeated(gzipSync('a')), 798_915],
    [
      'empty deflate blocks',
      'deflate',
      bytes(
        Buffer.concat([
          repeated(Buffer.from([0, 0, 0, 255, 255])),
          Buffer.from([1, 0, 0, 255, 255]),
        ]),
      ),
      0,
    ],
  ]
  for (const [name, coding, body, want] of cases) {
    const got = await decompress(body, coding, limit).then(
      (decoded) => decoded.byteLength,
      (error: unknown) => Object(error)['code'],
    )
    t.equal(got, want, name)
  }
  t.ok(process.memoryUsage().arrayBuffers < 400e6, 'what was decoded is collected')
})

t.test('what is not in its coding is a bad request', async (t) => {
  const junk = bytes(Buffer.from('not compressed at all'))
  for (const coding of ['gzip', 'deflate', 'br', 'zstd'] as const) {
    await t.rejects(decompress(junk, coding, 1000), { code: 'bad_request' }, coding)
    await t.rejects(decompress(new Uint8Array(0), coding, 1000), { code: 'bad_request' }, coding)
  }
  const cut = bytes(gzipSync('some text').subarray(0, 15))
  await t.rejects(decompress(cut, 'gzip', 1000), { code: 'bad_request' })
  await t.rejects(decompress(ZSTD_LINE.slice(0, -6), 'zstd', 1000), { code: 'bad_request' })
})

t.test('arbitrary bytes after a Zstandard magic number are decoded or refused', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 64 }), async (tail) => {
      const data = bytes(Buffer.concat([Buffer.from([0x28, 0xb5, 0x2f, 0xfd]), tail]))
      const got = await decompress(data, 'zstd', 1000).catch((error: unknown) => error)
      if (got instanceof Uint8Array) return got.byteLength <= (largestContent(data) ?? 0)
      return ['bad_request', 'body_too_large'].includes(String(Object(got)['code']))
    }),
  )
  t.equal(largestContent(new Uint8Array(0)), null)
})

t.test('the coding comes from Content-Encoding, one at most', async (t) => {
  const of = (...values: string[]) => {
    const bag = new HeaderBag()
    for (const value of values) bag.add('content-encoding', value)
    return bag
  }
  t.equal(readContentCoding(of()), 'identity')
  t.equal(readContentCoding(of('GZIP')), 'gzip')
  t.equal(readContentCoding(of('zstd')), 'zstd')
  t.equal(readContentCoding(of('zlib')), 'deflate')
  for (const values of [
    ['gzip,deflate'],
    ['gzip, deflate'],
    [' gzip ,\tdeflate '],
    ['gzip', 'deflate'],
  ])
    t.equal(readContentCoding(of(...values)), 'gzip', values.join())
  for (const values of [['compress'], ['gzip, gzip'], ['gzip', 'br'], ['constructor']]) {
    t.throws(
      () => readContentCoding(of(...values)),
      { code: 'unsupported_media_type' },
      values.join(),
    )
  }
})

t.test('the first bytes of a body tell its coding where the header lies', async (t) => {
  const text = Buffer.from('{"message":"one"}')
  const of = (body: Uint8Array, named: ContentCoding) => sniffCoding(bytes(body), named)
  t.equal(of(gzipSync(text), 'identity'), 'gzip')
  t.equal(of(ZSTD_LINE, 'gzip'), 'zstd')
  t.equal(of(deflateSync(text), 'gzip'), 'deflate', 'graypy')
  t.equal(of(deflateSync(text), 'identity'), 'deflate')
  t.equal(of(deflateSync(text), 'deflate'), 'deflate')
  t.equal(of(text, 'gzip'), 'identity')
  t.equal(of(Buffer.from('nothing known'), 'gzip'), 'gzip')
})

t.test('Snappy: a block, frames, and what is neither', async (t) => {
  const block = snappyBlock('hello '.repeat(500))
  const plain = async (data: Uint8Array, limit = 10_000) =>
    Buffer.from(await decompress(bytes(data), 'snappy', limit)).toString()
  t.equal(await plain(block), 'hello '.repeat(500))
  const chunk = (type: number, data: Uint8Array) => {
    const head = Buffer.alloc(8)
    head[0] = type
    head.writeUIntLE(data.length + 4, 1, 3)
    return Buffer.concat([head, data])
  }
  const head = Buffer.from([0xff, 6, 0, 0, ...Buffer.from('sNaPpY')])
  const frames = Buffer.concat([
    head,
    chunk(0, block),
    chunk(0xfe, block),
    chunk(1, Buffer.from('!')),
  ])
  t.equal(await plain(frames), `${'hello '.repeat(500)}!`)
  for (const data of [block, frames])
    await t.rejects(plain(data, 2_999), { code: 'body_too_large' }, 'the limit holds')
  const huge = Buffer.from([0xff, 0xff, 0xff, 0xff, 0x0f, 0xfc, 0, 0, 0, 0x80])
  await t.rejects(plain(huge), { code: 'bad_request' }, 'no block grows so much')
  for (const broken of [
    Buffer.alloc(0),
    Buffer.from([5, 0xf0]),
    frames.subarray(0, -1),
    chunk(2, block),
  ])
    await t.rejects(plain(broken), { code: 'bad_request' })
  await t.rejects(plain(Buffer.concat([head, chunk(2, block)])), { code: 'bad_request' })
})
