import { Type, type TObject } from '@sinclair/typebox'
import { test } from 'tap'
import { parseQueryTime } from '../../../src/api/query-time.js'
import { ListParameter } from '../../../src/api/schemas/page.js'
import { createValidator, type FieldError } from '../../../src/api/validation.js'
import { SeveritySchema } from '../../../src/model/schemas.js'

const SCHEMA = Type.Object({
  severity: ListParameter(SeveritySchema),
  search: Type.Optional(Type.String()),
  trace_id: Type.Optional(Type.String()),
  window: Type.Optional(Type.Union([Type.Literal('15m'), Type.Literal('24h')])),
})

function read(query: string, schema: TObject = SCHEMA) {
  const errors: FieldError[] = []
  const check = createValidator().texts('query', schema)
  return { values: check(new URLSearchParams(query), errors), errors }
}

void test('a parameter that is not known is an error that names the nearest one', async (t) => {
  for (const [query, path, near] of [
    ['tracid=x', 'tracid', 'trace_id'],
    ['traceId=x', 'traceId', 'trace_id'],
    ['serch=x&search=y', 'serch', 'search'],
    ['Severity=ERROR', 'Severity', 'severity'],
  ] as const) {
    const { errors } = read(query)
    t.strictSame(errors, [{ in: 'query', path, message: `is no parameter; did you mean ${near}?` }])
  }
  const far = read('tags.x=1').errors
  t.match(far, [{ path: 'tags.x', message: /there are severity, search, trace_id, window/ }])
  t.match(read('a=1', Type.Object({})).errors, [{ path: 'a', message: /none here/ }])
  t.equal(read(`${'x'.repeat(5_000)}=1`).errors[0]?.path.length, 128)
  t.equal(read('__proto__=1').errors.length, 1)
})

void test('words of a closed set are taken in any case, others as they are', async (t) => {
  t.strictSame(read('severity=error,Critical&severity=WARNING&window=24H&search=ErRor'), {
    values: { severity: ['ERROR', 'CRITICAL', 'WARNING'], window: '24h', search: 'ErRor' },
    errors: [],
  })
  t.equal(read('severity=err').errors.length, 1)
})

void test('a time may be relative to now', async (t) => {
  const near = (text: string, agoMs: number): void => {
    const off = Math.abs(Date.now() - agoMs - parseQueryTime(text, 'start_time'))
    t.ok(off < 60_000, text)
  }
  near('now', 0)
  near('now-30s', 30_000)
  near(' NOW-15m', 900_000)
  near('now-1h', 3_600_000)
  near('now-7D', 7 * 86_400_000)
  near('now-2w', 14 * 86_400_000)
  near('now+5m', -300_000)
  near('now 5m', -300_000)
  for (const text of ['now-', 'now-1', 'now-1y', 'now-1.5h', 'now--1h', 'now-999999999w', 'later'])
    t.throws(() => parseQueryTime(text, 'start_time'), {
      code: 'validation_error',
      details: { errors: [{ path: 'start_time' }] },
    })
})
