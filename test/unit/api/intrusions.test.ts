import { test } from 'tap'
import { createIntrusions, type IntrusionKind } from '../../../src/api/intrusions.js'
import type { AuditEntry } from '../../../src/records/audit-record.js'
import { MINUTE_MS } from '../../../src/model/time.js'

function setUp() {
  const clock = { ms: 1_700_000_000_000 }
  const entries: AuditEntry[] = []
  const counts = new Map<string, number>()
  const intrusions = createIntrusions({
    audit: { record: async (entry) => void entries.push(entry) },
    metrics: { credentialRefused: (kind) => void counts.set(kind, (counts.get(kind) ?? 0) + 1) },
    nowMs: () => clock.ms,
  })
  return { clock, entries, counts, intrusions }
}

void test('each kind is counted, and recorded as the route that refused it', async (t) => {
  const { intrusions, entries, counts } = setUp()
  const address = '192.0.2.7'
  const kinds: Readonly<Record<IntrusionKind, Partial<AuditEntry>>> = {
    ingest_key: { action: 'ingest', outcome: 'unauthorized', actorId: '' },
    api_token: { action: 'authenticate', outcome: 'unauthorized', actorId: '' },
    webhook_signature: { action: 'scmWebhook', outcome: 'invalid_signature', actorId: '' },
    refresh_token: { action: 'refresh', outcome: 'refresh_token_reused', actorId: 'ann' },
  }
  for (const [kind, entry] of Object.entries(kinds)) {
    intrusions.note(kind as IntrusionKind, { address, actorId: entry.actorId ?? '' })
    t.match(entries.at(-1), { ...entry, ip: address, detail: {} }, kind)
    t.equal(counts.get(kind), 1, kind)
  }
})

void test('an address has an entry a minute, which counts those before it', async (t) => {
  const { intrusions, entries, counts, clock } = setUp()
  const attempt = (address: string) => intrusions.note('ingest_key', { address })
  for (let i = 0; i < 1_000; i++) attempt('192.0.2.7')
  for (let i = 0; i < 1_000; i++) attempt(`2001:db8::${i.toString(16)}`)
  t.same(
    entries.map(({ ip }) => ip),
    ['192.0.2.7', '2001:db8::0'],
    'a network of IPv6 is one address',
  )
  clock.ms += MINUTE_MS
  attempt('192.0.2.7')
  t.match(entries.at(-1), { ip: '192.0.2.7', detail: { left_out: 999 } })
  clock.ms += MINUTE_MS
  attempt('192.0.2.7')
  t.strictSame(entries.at(-1)?.detail, {})
  t.equal(counts.get('ingest_key'), 2_002, 'all are counted')
})

void test('all addresses together have thirty entries a minute', async (t) => {
  const { intrusions, entries, clock } = setUp()
  const flood = () => {
    for (let i = 0; i < 5_000; i++)
      intrusions.note('webhook_signature', { address: `10.0.${i >> 8}.${i & 255}` })
  }
  flood()
  t.equal(entries.length, 30)
  clock.ms += MINUTE_MS
  flood()
  t.equal(entries.length, 60)
})
