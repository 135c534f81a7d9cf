import { ClickHouseError } from '@clickhouse/client'
import t from 'tap'
import { AppError } from '../../../src/model/errors.js'
import { toStoreFailure } from '../../../src/clickhouse/failure.js'

const refusal = (code: number, type: string, message: string): ClickHouseError =>
  new ClickHouseError({ code: String(code), type, message })

t.test('what passes is unavailability, with a time to come back', async (t) => {
  const errors = [
    refusal(252, 'TOO_MANY_PARTS', 'Too many parts'),
    refusal(241, 'MEMORY_LIMIT_EXCEEDED', 'Memory limit exceeded'),
    refusal(516, 'AUTHENTICATION_FAILED', 'Authentication failed'),
    Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }),
    new Error('socket hang up'),
    new SyntaxError('Unexpected end of JSON input'),
    'not an error',
  ]
  for (const error of errors) {
    const failure = toStoreFailure('query x', error, null)
    t.type(failure, AppError, String(error))
    t.match(failure, {
      code: 'dependency_unavailable',
      details: { dependency: 'clickhouse' },
      retryAfterS: Number,
    })
  }
})

t.test('cold storage that is away is told apart from ClickHouse', async (t) => {
  for (const code of [499, 341])
    t.match(toStoreFailure('query x', refusal(code, 'S3_ERROR', 'Connection refused'), null), {
      code: 'dependency_unavailable',
      message: 'cold storage is not available for query x',
      details: { dependency: 'cold_storage' },
    })
})

t.test('what S3 answered is the cause, without the names of objects', async (t) => {
  const text = 'Message: The specified bucket does not exist, bucket a, key b/c, object size 48.'
  const failure = toStoreFailure('query x', refusal(499, 'S3_ERROR', text), null)
  t.match(failure.cause, { message: /^Message: The specified bucket does not exist$/ })
})

t.test('a timeout says how long was waited', async (t) => {
  t.match(toStoreFailure('query x', new Error('aborted'), 5_000), {
    code: 'dependency_unavailable',
    message: 'ClickHouse did not finish query x: no answer within 5000 ms',
  })
})

t.test('a fault of our own is not taken for an outage', async (t) => {
  const fault = new TypeError('undefined is not a function')
  t.equal(toStoreFailure('query x', fault, null), fault)
})

t.test('a refusal has its number, and shows whether the rows are at fault', async (t) => {
  const table = toStoreFailure('insert into a', refusal(60, 'UNKNOWN_TABLE', 'Table a'), null)
  t.match(table, { name: 'StoreError', code: 60, type: 'UNKNOWN_TABLE', isDataError: false })
  const rows = toStoreFailure('insert into a', refusal(117, 'INCORRECT_DATA', 'at row 1'), null)
  t.match(rows, { name: 'StoreError', code: 117, isDataError: true })
  const unreadable = refusal(50, 'UNKNOWN_TYPE', 'Unknown type family: While executing Native. ')
  t.match(toStoreFailure('insert into a', unreadable, null), { code: 50, isDataError: true })
})

t.test('no text of a failure holds a value', async (t) => {
  const secret = 'hunter2'
  const errors = [
    refusal(6, 'CANNOT_PARSE_TEXT', `Cannot parse: ${secret}`),
    refusal(47, 'UNKNOWN_IDENTIFIER', `Unknown a in SELECT '${secret}', 'it\\'s ${secret}'`),
    refusal(62, 'SYNTAX_ERROR', `failed at position 1: ${secret}: While executing Native. `),
    refusal(241, 'MEMORY_LIMIT_EXCEEDED', `while running ${secret}`),
    new Error(`<html>${secret}</html>`),
  ]
  for (const error of errors) {
    const failure = toStoreFailure('query x', error, null)
    t.notMatch(failure.message, secret, failure.message)
    t.equal(failure.cause, undefined)
  }
  t.match(errors[1] && toStoreFailure('query x', errors[1], null).message, 'Unknown a in SELECT')
})
