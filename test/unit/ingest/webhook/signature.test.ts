import crypto, { createHmac } from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { assert, asyncProperty, constantFrom, oneof, string, uint8Array } from 'fast-check'
import { test } from 'tap'
import { verifySignature } from '../../../../src/ingest/webhook/signature.js'

const body = new TextEncoder().encode('{"object_kind":"push"}')
const sign = (secret: string, of: Uint8Array = body): string =>
  createHmac('sha256', secret).update(of).digest('hex')

void test('a body that is signed with any of the secrets is accepted', async (t) => {
  t.ok(await verifySignature(sign('current'), body, ['current']))
  t.ok(await verifySignature(sign('current'), body, ['current', 'previous']))
  t.ok(await verifySignature(sign('previous'), body, ['current', 'previous']))
  t.ok(await verifySignature(sign('previous'), body, ['', 'previous']))
})

void test('the digest is the one of RFC 4231, case 2', async (t) => {
  const text = new TextEncoder().encode('what do ya want for nothing?')
  const digest = '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843'
  t.ok(await verifySignature(digest, text, ['Jefe']))
})

void test('without a secret nothing is accepted, not even a signature with the empty secret', async (t) => {
  t.notOk(await verifySignature(sign('current'), body, []))
  t.notOk(await verifySignature(sign(''), body, ['']))
})

void test('another secret, another body or another digest is refused', async (t) => {
  t.notOk(await verifySignature(sign('other'), body, ['current', 'previous']))
  t.notOk(await verifySignature(sign('current'), new Uint8Array(), ['current']))
  const digest = sign('current')
  for (const [index, digit] of digest.split('').entries()) {
    const wrong = `${digest.slice(0, index)}${digit === '0' ? '1' : '0'}${digest.slice(index + 1)}`
    t.notOk(await verifySignature(wrong, body, ['current']), `digit ${index}`)
  }
})

void test('a header of another length, case or alphabet is refused and never throws', async (t) => {
  const digest = sign('current')
  const refused = [
    undefined,
    '',
    digest.slice(1),
    `${digest}0`,
    `${digest}\n`,
    ` ${digest}`,
    `sha256=${digest}`,
    digest.toUpperCase(),
    digest.replace(/.$/, 'é'),
    digest.replace(/^../, '💥'),
    '\0'.repeat(64),
    'f'.repeat(1_000_000),
  ]
  for (const header of refused) t.notOk(await verifySignature(header, body, ['current']))
  await assert(
    asyncProperty(
      oneof(string({ unit: 'binary' }), string({ unit: constantFrom('0', 'f', 'A', ' ') })),
      async (header) => !(await verifySignature(header, body, ['current', 'previous'])),
    ),
  )
})

void test('the right digest is accepted for any bytes and secret', async () => {
  await assert(
    asyncProperty(uint8Array(), string({ minLength: 1 }), async (bytes, secret) =>
      verifySignature(sign(secret, bytes), bytes, [secret]),
    ),
  )
})

void test('every secret is compared in constant time, independently of the one that matches', async (t) => {
  const { timingSafeEqual: compare, createHmac: create } = crypto
  let [hmacs, compared] = [0, 0]
  crypto.createHmac = (...args) => {
    hmacs++
    return create(...args)
  }
  crypto.timingSafeEqual = (a, b) => {
    compared++
    return compare(a, b)
  }
  // Named imports of the module see the replaced functions.
  syncBuiltinESMExports()
  t.teardown(() => {
    Object.assign(crypto, { timingSafeEqual: compare, createHmac: create })
    syncBuiltinESMExports()
  })
  const body = Buffer.from('{"a":1}')
  const secrets = ['current', 'previous', 'oldest']
  const digests = secrets.map((secret) => create('sha256', secret).update(body).digest('hex'))
  for (const header of [...digests, '0'.repeat(64), `${digests[0]?.slice(0, 63)}0`]) {
    ;[hmacs, compared] = [0, 0]
    await verifySignature(header, body, secrets)
    t.same({ hmacs, compared }, { hmacs: 3, compared: 3 }, header)
  }
})

void test('a large body, in memory that threads share, leaves the event loop to others meanwhile', async (t) => {
  const large = new Uint8Array(new SharedArrayBuffer(8 * 1024 * 1024)).fill(7)
  let turns = 0
  const count = (): void => {
    turns++
    timer = setImmediate(count)
  }
  let timer = setImmediate(count)
  t.ok(await verifySignature(sign('current', large), large, ['previous', 'current']))
  clearImmediate(timer)
  t.ok(turns > 20, `${turns} turns of the event loop`)
})
