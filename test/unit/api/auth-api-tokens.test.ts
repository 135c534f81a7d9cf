import { test } from 'tap'
import { createApiTokens, type ApiToken } from '../../../src/api/auth/api-tokens.js'
import { until } from '../../support/state-contract.js'
import { memoryEntities } from '../../support/entities.js'

function setUp() {
  const clock = { ms: 1_700_000_000_000 }
  const entities = memoryEntities<ApiToken>()
  const onError = (error: unknown): void => {
    throw error
  }
  return { clock, entities, tokens: createApiTokens({ entities, onError, nowMs: () => clock.ms }) }
}

const ROOT = { userId: 'root', role: 'superadmin' } as const
const INPUT = { name: 'x', role: 'viewer', sources: null, expiresAtMs: null } as const

void test('a token is known by its text until its end', async (t) => {
  const { clock, entities, tokens } = setUp()
  const end = clock.ms + 1000
  const made = await tokens.create(ROOT, { ...INPUT, sources: ['web'], expiresAtMs: end })
  t.notOk(JSON.stringify(entities.list()).includes(made.key.slice(8)), 'only a hash is stored')
  t.match(tokens.authenticate(made.key), {
    userId: made.stored.id,
    role: 'viewer',
    isToken: true,
    sources: ['web'],
    requiredAction: null,
  })
  await until(() => entities.get(made.stored.id)?.lastUsedAtMs === clock.ms)
  t.ok(tokens.isAlive(made.stored.id))
  for (const other of [`${made.key}x`, made.key.slice(0, -1), 'lat_', `lat_${'x'.repeat(300)}`])
    t.throws(() => tokens.authenticate(other), { code: 'unauthorized' })
  clock.ms = end
  t.throws(() => tokens.authenticate(made.key), { code: 'token_expired' })
  t.notOk(tokens.isAlive(made.stored.id))
  await tokens.remove(ROOT, made.stored.id)
  t.throws(() => tokens.authenticate(made.key), { code: 'unauthorized' })
  await t.rejects(tokens.remove(ROOT, made.stored.id), { code: 'not_found' })
})

void test('a token that is limited to sources is a viewer', async (t) => {
  const { tokens } = setUp()
  const input = { ...INPUT, role: 'manager', sources: ['web'] } as const
  await t.rejects(tokens.create(ROOT, input), { code: 'validation_error' })
})
