import { array, assert, boolean, constantFrom, property } from 'fast-check'
import { test } from 'tap'
import { SEVERITIES, type Severity } from '../../../src/model/event.js'
import {
  guessScale,
  LEVEL_WORDS,
  parseSeverity,
  saysMoreThanSeverity,
  severityOfNumber,
  type SeverityScale,
} from '../../../src/model/severity.js'

void test('a level is known in every common spelling', async (t) => {
  const reads = (want: Severity, ...texts: string[]) => {
    for (const text of texts) t.equal(parseSeverity(text), want, text)
  }
  reads(
    'DEBUG',
    'debug',
    'TRACE',
    'Verbose',
    'silly',
    'FINEST',
    'finer',
    'fine',
    'config',
    'D',
    't',
  )
  reads(
    'INFO',
    'info',
    'INF',
    'Information',
    'notice',
    'http',
    'log',
    'ok',
    'i',
    'success',
    'audit',
  )
  reads('WARNING', 'warn', 'WRN', 'Warning', 'w', 'caution')
  reads('ERROR', 'error', 'ERR', 'eror', 'E', 'severe', 'failed', 'failure', 'exception')
  reads('CRITICAL', 'critical', 'crit', 'FATAL', 'ftl', 'panic', 'dpanic', 'alert', 'a', 'emerg')
})

void test('case, blanks, brackets and colons around a level are ignored', async (t) => {
  t.equal(parseSeverity('  [WaRn]: '), 'WARNING')
  t.equal(parseSeverity('<err>'), 'ERROR')
  assert(
    property(
      constantFrom(...SEVERITIES.flatMap((s) => LEVEL_WORDS[s].map((w) => [w, s] as const))),
      array(boolean(), { minLength: 16, maxLength: 16 }),
      constantFrom('', ' ', '[', '<', '\t'),
      constantFrom('', ' ', ']', '>:', ':'),
      ([word, severity], upper, before, after) => {
        const mixed = Array.from(word, (c, i) => (upper[i] === true ? c.toUpperCase() : c)).join('')
        return parseSeverity(before + mixed + after) === severity
      },
    ),
  )
})

void test('the numbered short names of OpenTelemetry are levels', async (t) => {
  t.equal(parseSeverity('WARN2'), 'WARNING')
  t.equal(parseSeverity('FATAL4'), 'CRITICAL')
  t.equal(parseSeverity('INFO5'), null)
})

void test("a level may be coloured, or between those of Go's slog", async (t) => {
  t.equal(parseSeverity('\u001b[1;31mERROR\u001b[39m'), 'ERROR')
  t.equal(saysMoreThanSeverity('\u001b[31merror\u001b[39m'), false)
  t.equal(parseSeverity('ERROR+2'), 'ERROR')
  t.equal(parseSeverity('DEBUG-4'), 'DEBUG')
  t.equal(saysMoreThanSeverity('ERROR+2'), true)
  t.equal(parseSeverity('notice+2'), null)
})

void test('a text that is no level names none', async (t) => {
  for (const text of ['', ' ', 'banana', '3', 'unknown', 'P1', 'x'.repeat(1_000_000), '__proto__'])
    t.equal(parseSeverity(text), null, text.slice(0, 20))
})

void test('each numeric scale gives the severity of its table', async (t) => {
  const reads = (scale: SeverityScale, table: readonly (readonly [number, Severity | null])[]) => {
    for (const [n, want] of table) t.equal(severityOfNumber(n, scale), want, `${scale} ${n}`)
  }
  const syslog = ['CRITICAL', 'CRITICAL', 'CRITICAL', 'ERROR', 'WARNING', 'INFO', 'INFO', 'DEBUG']
  for (const [n, want] of syslog.entries()) t.equal(severityOfNumber(n, 'syslog'), want, `${n}`)
  reads('syslog', [
    [-1, null],
    [8, null],
    [3.5, null],
    [Number.NaN, null],
  ])
  reads('otel', [
    [0, 'INFO'],
    [1, 'DEBUG'],
    [8, 'DEBUG'],
    [9, 'INFO'],
    [12, 'INFO'],
    [13, 'WARNING'],
  ])
  reads('otel', [
    [16, 'WARNING'],
    [17, 'ERROR'],
    [20, 'ERROR'],
    [21, 'CRITICAL'],
    [24, 'CRITICAL'],
    [25, null],
  ])
  reads('pino', [
    [10, 'DEBUG'],
    [20, 'DEBUG'],
    [30, 'INFO'],
    [35, 'INFO'],
    [40, 'WARNING'],
    [45, 'WARNING'],
  ])
  reads('pino', [
    [50, 'ERROR'],
    [60, 'CRITICAL'],
  ])
  reads('logback', [
    [5000, 'DEBUG'],
    [10_000, 'DEBUG'],
    [20_000, 'INFO'],
    [30_000, 'WARNING'],
  ])
  reads('logback', [
    [40_000, 'ERROR'],
    [50_000, 'CRITICAL'],
  ])
  reads('python', [
    [0, 'INFO'],
    [10, 'DEBUG'],
    [20, 'INFO'],
    [25, 'INFO'],
    [30, 'WARNING'],
    [40, 'ERROR'],
    [50, 'CRITICAL'],
  ])
  reads('windows', [
    [0, 'INFO'],
    [1, 'CRITICAL'],
    [2, 'ERROR'],
    [3, 'WARNING'],
    [4, 'INFO'],
    [5, 'DEBUG'],
    [6, null],
  ])
})

void test('a bare number is read on the scale whose range it is in', async (t) => {
  const reads = (n: number, want: Severity | null) =>
    t.equal(severityOfNumber(n, guessScale(n)), want, `${n}`)
  reads(3, 'ERROR')
  reads(9, 'INFO')
  reads(10, 'DEBUG')
  reads(13, 'WARNING')
  reads(17, 'ERROR')
  reads(20, 'DEBUG')
  reads(21, 'CRITICAL')
  reads(30, 'INFO')
  reads(35, 'INFO')
  reads(50, 'ERROR')
  reads(40_000, 'ERROR')
  reads(400, null)
})

void test('a spelling is more precise than the severity only if five severities cannot express it', async (t) => {
  for (const text of ['info', 'WARN', '[Error]', 'Information', 'CRIT'])
    t.notOk(saysMoreThanSeverity(text), text)
  for (const text of ['notice', 'FATAL', 'trace', 'banana']) t.ok(saysMoreThanSeverity(text), text)
})
