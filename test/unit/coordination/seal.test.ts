import { assert, property, string, nat } from 'fast-check'
import { test } from 'tap'
import { createSeal } from '../../../src/coordination/seal.js'

const key = 'a secret of more than thirty-two characters'

void test('what is sealed opens with the same key and context, and with no others', async (t) => {
  const { seal, open } = createSeal(key)
  assert(
    property(string(), string(), (text, context) => open(seal(text, context), context) === text),
  )
  const sealed = seal('JBSWY3DPEHPK3PXP', 'ann')
  t.equal(open(sealed, 'bob'), null, 'another record')
  t.equal(createSeal('another secret, of as many characters').open(sealed, 'ann'), null)
  t.equal(createSeal(key).open(sealed, 'ann'), 'JBSWY3DPEHPK3PXP', 'after a restart')
  t.not(seal('JBSWY3DPEHPK3PXP', 'ann'), sealed, 'twice the same is not seen')
  t.notOk(sealed.includes('JBSWY3DP'))
})

void test('a text that was changed or cut does not open', async (t) => {
  const { seal, open } = createSeal(key)
  const bytes = Buffer.from(seal('secret', 'x'), 'base64url')
  assert(
    property(nat(bytes.length - 1), nat(7), (at, bit) => {
      const changed = Buffer.from(bytes)
      changed[at] = (changed[at] ?? 0) ^ (1 << bit)
      return open(changed.toString('base64url'), 'x') === null
    }),
  )
  for (let length = 0; length < bytes.length; length++)
    t.equal(open(bytes.subarray(0, length).toString('base64url'), 'x'), null, `${length} bytes`)
  t.equal(open('', 'x'), null)
  t.equal(open('no base64 {}', 'x'), null)
})
