import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'

const folder = fileURLToPath(new URL('../../../../src/ui', import.meta.url))

/** An element of a form as it is written, with texts and up to four braces within each other. */
const FIELD =
  /<(?:input|textarea|select)\b(?:"[^"]*"|\{(?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*\}|[^{}">])*>/g

void test('a field that is given its value learns what is typed', async (t) => {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const fields = files
    .filter((file) => file.endsWith('.tsx'))
    .flatMap((file) => readFileSync(join(folder, file), 'utf8').match(FIELD) ?? [])
  t.ok(fields.length > 50, `${fields.length} fields`)
  const given = fields.filter((field) => /\s(?:value|checked)=\{/.test(field))
  t.ok(given.length > 20, `${given.length} are given their value`)
  // What is typed would be lost when the form is drawn anew; defaultValue only begins with it.
  const deaf = given.filter((field) => !/\son(?:Input|Change)=/.test(field))
  t.same(deaf, [])
})
