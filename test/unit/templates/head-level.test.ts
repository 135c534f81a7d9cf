import t from 'tap'
import { levelAtHead } from '../../../src/templates/head-level.js'
import type { Severity } from '../../../src/model/event.js'

const LEVELS: readonly (readonly [string, Severity])[] = [
  ['[error] open failed', 'ERROR'],
  ['ERROR: open failed', 'ERROR'],
  ['\u001b[31merror\u001b[39m: open failed', 'ERROR'],
  ['[12:00:00.123] \u001b[33mWARN\u001b[39m (7): \u001b[36mopen failed\u001b[39m', 'WARNING'],
  ['Out of memory: Killed process 812 (java) total-vm:4190212kB', 'ERROR'],
  ['[ 7123.456789] Memory cgroup out of memory: Kill process 812 (java)', 'ERROR'],
  ['error: Received disconnect from 10.0.0.1', 'ERROR'],
  ['fatal: Write failed: Connection reset by peer', 'CRITICAL'],
  ['WARNING something is odd', 'WARNING'],
  ['panic: runtime error: index out of range', 'CRITICAL'],
  ['Error while reading the file', 'ERROR'],
  ['E1121 09:28:19.000000   12 server.go:12] no route', 'ERROR'],
  ['I1121 09:28:19.000000   12 server.go:12] ready', 'INFO'],
  ['2026/11/21 09:28:17 [notice] 17848#17848: using epoll', 'INFO'],
  ['[Sun Dec 04 04:47:44 2005] [error] mod_jk child in error state 6', 'ERROR'],
  ['[Sun Dec 04 04:47:44 2005] [core:error] [pid 1] not found', 'ERROR'],
  ['2026-01-01 12:00:00.123 UTC [1234] LOG:  checkpoint starting', 'INFO'],
  ['2026-01-01 12:00:00.123 UTC [1234] bob@db ERROR:  no such table', 'ERROR'],
  ['ERROR:root:boom', 'ERROR'],
  ['12:00:00.123 [main] WARN c.f.Foo - slow', 'WARNING'],
  ['2026-01-01 12:00:00.123  INFO 12345 --- [main] c.e.App : ready', 'INFO'],
  ['2026-01-01 12:00:00,123 - shop - CRITICAL - no disk', 'CRITICAL'],
  ['[12:00:00 ERR] no route', 'ERROR'],
  ['[2026-01-01T00:00:00Z ERROR shop] no route', 'ERROR'],
  ['E, [2026-01-01T00:00:00 #1] ERROR -- : no route', 'ERROR'],
  ['2026-01-01T00:00:00Z\terror\tno route', 'ERROR'],
  ['time="2026-01-01T00:00:00Z" level=warning msg=slow', 'WARNING'],
  ['{"ts":1,"level":"warn","msg":"slow"}', 'WARNING'],
  ['17/06/09 20:10:40 ERROR executor.Backend: lost', 'ERROR'],
  ['Dec 10 06:55:46 host sshd[24200]: fatal: Write failed', 'CRITICAL'],
  ['fail: Microsoft.Hosting.Lifetime[14]', 'ERROR'],
  ['trce: Microsoft.Hosting.Lifetime[14]', 'DEBUG'],
  ['<crit> no disk', 'CRITICAL'],
]

const NO_LEVEL: readonly string[] = [
  'no errors found',
  'error_count=0',
  '0 errors',
  'errors: 0',
  'error(s): 0',
  'critical=0',
  'error=null took 5 ms',
  'critical section entered',
  'Error handler registered',
  'error-page served',
  'The alert was sent',
  'Alert manager started',
  'Emergency contact saved',
  'PGOOD ERROR LATCH IS ACTIVE',
  'Failed password for root from 10.0.0.1',
  '2026-01-01 12:00:00 no errors found',
  'Dec 10 06:55:46 host sshd[24200]: Failed password',
  'All systems go',
  'Fine weather today',
  'I think so',
  'E 42',
  '',
]

t.test('the level at the head of a message is read', async (t) => {
  for (const [message, severity] of LEVELS) {
    t.equal(levelAtHead(message), severity, message)
    t.equal(levelAtHead(Buffer.from(message)), severity, `bytes: ${message}`)
  }
})

t.test('words inside a message are no levels', async (t) => {
  for (const message of NO_LEVEL) t.equal(levelAtHead(message), null, message)
})

t.test('a level after the head is ignored', async (t) => {
  t.equal(levelAtHead(`12:00:00 ${'x1 '.repeat(100)} ERROR`), null)
})
