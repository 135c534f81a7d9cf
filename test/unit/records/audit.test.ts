import { Type } from '@sinclair/typebox'
import { test } from 'tap'
import { createChain, NO_HEAD } from '../../../src/records/audit-chain.js'
import { createAudit } from '../../../src/records/audit.js'
import type { AuditEntry, AuditRecord } from '../../../src/records/audit-record.js'
import { audited } from '../../../src/api/audited.js'
import { route } from '../../../src/api/route.js'
import { AppError } from '../../../src/model/errors.js'
import { USERS, startApi } from '../../support/api.js'
import { recordingLog } from '../../support/http.js'

const entry: AuditEntry = {
  actorId: 'a',
  action: 'deleteSource',
  target: 'web',
  outcome: 'ok',
  ip: '127.0.0.1',
  detail: {},
}
const unavailable = new AppError('dependency_unavailable', 'down')
const newChain = () => createChain('one', NO_HEAD, () => undefined)
const limits = { gapMs: 1, waitMs: 1_000, waiting: 100 }

void test('an entry is stored when record resolves; concurrent ones are inserted together', async (t) => {
  const batches: (readonly AuditRecord[])[] = []
  const append = async (rows: readonly AuditRecord[]) => void batches.push(rows)
  const audit = createAudit({
    append,
    chain: newChain(),
    log: recordingLog(),
    nowMs: () => 5_000,
    limits,
  })
  await audit.record(entry)
  t.equal(batches.length, 1)
  await Promise.all(Array.from({ length: 50 }, () => audit.record(entry)))
  const all = batches.flat()
  t.equal(all.length, 51)
  t.ok(batches.length <= 3, `${batches.length} inserts`)
  t.ok(
    all.every(({ seq }, i) => i === 0 || (all[i - 1]?.seq ?? 0) < seq),
    'in order',
  )
  t.equal(new Set(all.map(({ id }) => id)).size, 51)
})

void test('an outage delays the trail, not the action; the same batch is offered again', async (t) => {
  const tokens: string[] = []
  const stored: AuditRecord[] = []
  let down = true
  const append = async (rows: readonly AuditRecord[], token: string) => {
    tokens.push(token)
    if (down) throw unavailable
    stored.push(...rows)
  }
  const log = recordingLog()
  const audit = createAudit({ append, chain: newChain(), log, limits: { ...limits, waitMs: 5 } })
  await audit.record(entry)
  t.strictSame(stored, [])
  t.match(log.entries.at(-1), { message: 'audit entry is late', fields: { audit: entry } })
  await audit.record({ ...entry, target: 'db' })
  down = false
  await audit.close(5_000)
  t.strictSame(
    stored.map(({ target }) => target),
    ['web', 'db'],
  )
  t.equal(new Set(tokens).size, 2, 'one token a batch, whatever the tries')
})

void test('entries are bounded while they cannot be stored, and what goes is logged', async (t) => {
  const log = recordingLog()
  const append = () => new Promise<void>(() => undefined)
  const audit = createAudit({
    append,
    chain: newChain(),
    log,
    limits: { ...limits, waitMs: 1, waiting: 10 },
  })
  await Promise.all(
    Array.from({ length: 30 }, (_, i) => audit.record({ ...entry, target: `${i}` })),
  )
  const lost = log.entries.filter(({ message }) => message === 'audit entry is not stored')
  t.ok(lost.length >= 19, `${lost.length}`)
  await audit.close(1)
})

void test('a batch that can never be stored does not hold up the next', async (t) => {
  const stored: string[] = []
  const log = recordingLog()
  const append = async (rows: readonly AuditRecord[]) => {
    if (rows.some(({ target }) => target === 'bad')) throw new Error('refused')
    stored.push(...rows.map(({ target }) => target))
  }
  const audit = createAudit({ append, chain: newChain(), log, limits })
  await audit.record({ ...entry, target: 'bad' })
  await audit.record({ ...entry, target: 'good' })
  t.strictSame(stored, ['good'])
  t.ok(log.entries.some(({ fields }) => JSON.stringify(fields).includes('"bad"')))
})

const facts = {
  errors: [],
  reply: Type.Unknown(),
} as const
const routes = [
  route({
    ...facts,
    id: 'getThing',
    method: 'get',
    path: '/things',
    summary: '',
    role: 'viewer',
    handle: () => null,
  }),
  route({
    ...facts,
    id: 'login',
    method: 'post',
    path: '/login',
    summary: '',
    role: 'public',
    bodyBytes: 1_000,
    body: Type.Object({ email: Type.String(), password: Type.String() }),
    handle: ({ body }) => {
      if (body.password !== 'right') throw new AppError('invalid_credentials', 'no')
      return {}
    },
  }),
  route({
    ...facts,
    id: 'setUserRole',
    method: 'put',
    path: '/users/{id}/role',
    summary: '',
    role: 'superadmin',
    bodyBytes: 1_000,
    params: Type.Object({ id: Type.String() }),
    body: Type.Object({ role: Type.String() }),
    handle: () => ({}),
  }),
  route({
    ...facts,
    id: 'toggleSource',
    method: 'post',
    path: '/toggle',
    summary: '',
    role: 'manager',
    query: Type.Object({ enabled: Type.Boolean() }),
    handle: () => ({ id: 7 }),
  }),
]

void test('changes and logins are recorded with actor, target and outcome, and without secrets', async (t) => {
  const recorded: AuditEntry[] = []
  const record = async (each: AuditEntry) => void recorded.push(each)
  const { call } = startApi(t, audited(routes, { record }), {})
  await call('viewer', 'GET /things')
  await call(null, 'POST /login', { email: 'ann@example.com', password: 'wrong' })
  await call(null, 'POST /login', { email: 'ann@example.com', password: 'right' })
  await call('superadmin', 'PUT /users/42/role', { role: 'admin' })
  await call('manager', 'POST /toggle?enabled=false')
  await call('manager', 'PUT /users/42/role', { role: 'admin' })
  const ip = '127.0.0.1'
  const login = { actorId: '', action: 'login', target: 'ann@example.com', ip, detail: {} }
  t.strictSame(recorded, [
    { ...login, outcome: 'invalid_credentials' },
    { ...login, outcome: 'ok' },
    {
      actorId: USERS.superadmin,
      action: 'setUserRole',
      target: '42',
      outcome: 'ok',
      ip,
      detail: { role: 'admin' },
    },
    {
      actorId: USERS.manager,
      action: 'toggleSource',
      target: '7',
      outcome: 'ok',
      ip,
      detail: { enabled: false },
    },
  ])
  t.notMatch(JSON.stringify(recorded), /wrong|right/)
})
