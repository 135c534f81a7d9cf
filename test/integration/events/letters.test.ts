import { t as suite, test } from 'tap'
import type { QueryParams } from '../../../src/clickhouse/client.js'
import { bound } from '../../../src/events/bind.js'
import { toTerm } from '../../../src/events/terms.js'
import { inMessage } from '../../../src/events/text-condition.js'
import { toWords } from '../../../src/model/words.js'
import { createTestDatabase, startTestServer } from '../../support/clickhouse.js'
import { applySchema } from '../../support/landing.js'

const server = await startTestServer()
suite.teardown(() => server.stop())

void test('a letter is found in upper and in lower case, in any script', async (t) => {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  // RE2 does not know Ᲊ, a letter of 2024.
  const letters = Array.from({ length: 0x20_00 }, (_, code) => String.fromCodePoint(code))
    .map((upper) => ({ upper, lower: upper.toLowerCase() }))
    .filter(
      ({ upper, lower }) =>
        /[^\P{L}Ᲊ]/u.test(upper) && upper !== lower && upper === lower.toUpperCase(),
    )
  const ts = new Date().toISOString()
  const rows = letters.map(({ upper }, i) => {
    const constant_text = `before ${i} e${upper}x-e after, which makes a block of rows long`
    const search_words = toWords(constant_text).join(' ')
    return {
      id: i + 1,
      is_new: 1,
      n: 1,
      ts,
      received_at: ts,
      source: 'web',
      constant_text,
      search_words,
    }
  })
  await store.insertRows('landing', rows)
  const missed: string[] = []
  for (let from = 0; from < letters.length; from += 50) {
    const part = letters.slice(from, from + 50)
    const conditions = part.flatMap(({ lower }, i) =>
      (['phrase', 'prefix'] as const).map((kind) =>
        bound(`${kind}${i}_`, (bind) => inMessage(toTerm({ kind, text: `E${lower}x-` }), bind)),
      ),
    )
    const counts = conditions.map(({ sql }, i) => `countIf(${sql}) AS n${i}`).join(', ')
    const params = Object.assign({}, ...conditions.map((one) => one.params))
    const sql = `SELECT ${counts} FROM events`
    const [found = {}] = await store.query<QueryParams, Record<string, number>>(
      { name: 'n', sql },
      params,
    )
    part.forEach(({ upper }, i) => {
      if (found[`n${2 * i}`] !== 1 || found[`n${2 * i + 1}`] !== 1) missed.push(upper)
    })
  }
  t.same(missed, [])
  t.ok(letters.length > 800, `${letters.length} letters`)
})
