import * as fc from 'fast-check'
import t from 'tap'
import { parseMultipart } from '../../../src/http/multipart.js'
import { uws } from '../../support/http.js'

const LIMITS = { fileBytes: 1000, fieldBytes: 100, parts: 8 }
const TYPE = 'multipart/form-data; boundary=XyZ'
const field = (name: string, value: string) =>
  `Content-Disposition: form-data; name="${name}"\r\n\r\n${value}`
const body = (parts: readonly string[], end = '--XyZ--\r\n') =>
  new Uint8Array(Buffer.from(parts.map((part) => `--XyZ\r\n${part}\r\n`).join('') + end))
const parse = (bytes: Uint8Array<ArrayBuffer>, type = TYPE) =>
  parseMultipart(uws, bytes, type, LIMITS)

t.test('fields and files come out as they were sent', async (t) => {
  const file =
    'Content-Disposition: form-data; name="file"; filename="a.csv"\r\nContent-Type: text/csv\r\n\r\na,b\r\n1,2'
  const form = parse(body([field('añ', 'é'), file]))
  t.same(form.fields, { añ: 'é' })
  t.match(form.files, [{ name: 'file', filename: 'a.csv', type: 'text/csv' }])
  t.equal(Buffer.from(form.files[0]?.data ?? []).toString(), 'a,b\r\n1,2')
})

t.test('binary content survives whatever it is', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 1000 }), async (data) => {
      const sent = new FormData()
      sent.set('file', new Blob([new Uint8Array(data)]), 'x.bin')
      const request = new Request('http://localhost', { method: 'POST', body: sent })
      const bytes = new Uint8Array(await request.arrayBuffer())
      const form = parse(bytes, request.headers.get('content-type') ?? '')
      const got = form.files[0]?.data ?? new Uint8Array(1)
      return Buffer.compare(got, data) === 0 && got.buffer.byteLength === data.byteLength
    }),
  )
})

t.test('the boundary may be quoted and stand after other parameters', async (t) => {
  const type = 'Multipart/Form-Data; charset=utf-8; boundary="XyZ"'
  t.same(parse(body([field('a', '1')]), type).fields, { a: '1' })
})

t.test('another content type is 415', async (t) => {
  for (const type of [
    '',
    'application/json',
    'multipart/mixed; boundary=XyZ',
    'multipart/form-data',
  ]) {
    t.throws(() => parse(body([field('a', '1')]), type), { code: 'unsupported_media_type' }, type)
  }
})

t.test('a form that is malformed, truncated or beyond a limit is refused whole', async (t) => {
  const two = [field('a', '1'), field('b', '2')]
  const whole = body(two)
  const broken: [string, Uint8Array<ArrayBuffer>][] = [
    ['empty', new Uint8Array(0)],
    ['no end', body(two, '')],
    ['junk', new Uint8Array(Buffer.from('hello'))],
    ['a part without a name', body(['Content-Disposition: form-data\r\n\r\nx'])],
    ['no parts', body([])],
    ['a field that is too long', body([field('a', 'x'.repeat(101))])],
    ['too many parts', body(Array.from({ length: 9 }, (_, i) => field(`f${i}`, '1')))],
    ['not UTF-8', new Uint8Array(Buffer.from(whole).map((byte) => (byte === 0x31 ? 0xff : byte)))],
  ]
  for (const [name, bytes] of broken) {
    t.throws(() => parse(bytes), { code: 'validation_error' }, name)
  }
  for (let length = 0; length < whole.length - 2; length++) {
    t.throws(() => parse(whole.slice(0, length)), { code: 'validation_error' }, `${length} bytes`)
  }
  const large = `Content-Disposition: form-data; name="f"; filename="x"\r\n\r\n${'x'.repeat(1001)}`
  t.throws(() => parse(body([large])), { code: 'file_too_large' })
})

t.test('the parser gets no form with more parts than the limit, whatever they are', (t) => {
  let most = 0
  const getParts: typeof uws.addon.getParts = (bytes, type) => {
    const parts = uws.addon.getParts(bytes, type)
    most = Math.max(most, parts?.length ?? 0)
    return parts
  }
  const watched = { ...uws, addon: { ...uws.addon, getParts } }
  const contents = ['', '\r\n', '\r\n\r\n', 'A: b\r\n\r\n', field('a', ''), field('a', 'b')]
  fc.assert(
    fc.property(
      fc.constantFrom('X', 'XyZ', 'x'.repeat(70)),
      fc.array(fc.constantFrom(...contents), { minLength: 1, maxLength: 12 }),
      fc.constantFrom(1, 3, 500),
      (boundary, parts, times) => {
        const sent = Array.from({ length: times }, () => parts).flat()
        const text = sent.map((part) => `--${boundary}\r\n${part}\r\n`).join('')
        const bytes = new Uint8Array(Buffer.from(`${text}--${boundary}--\r\n`))
        const type = `multipart/form-data; boundary=${boundary}`
        const parse = () => parseMultipart(watched, bytes, type, LIMITS)
        if (sent.length <= LIMITS.parts) return true
        t.throws(parse, { code: 'validation_error' })
        return most <= LIMITS.parts
      },
    ),
    { numRuns: 50 },
  )
  t.ok(most <= LIMITS.parts)
  t.end()
})
