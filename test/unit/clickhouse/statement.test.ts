import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { listSchema, readSchema, statement } from '../../../src/clickhouse/statement.js'

const sourceDir = new URL('../../../src/', import.meta.url)

/** The names given to `statement()` in the compiled program. */
function usedNames(): string[] {
  const files = readdirSync(sourceDir, { recursive: true, encoding: 'utf8' })
  const texts = files
    .filter((file) => /\.[jt]s$/.test(file) && !file.endsWith('statement.js'))
    .map((file) => readFileSync(join(sourceDir.pathname, file), 'utf8'))
  return texts.flatMap((text) =>
    Array.from(text.matchAll(/\bstatement(?:<[^()]*>)?\(\s*'([^']+)'/g), (match) => match[1] ?? ''),
  )
}

const fileNames = listSchema('queries').map((file) => file.replace(/\.sql$/, ''))

/** `name Type, name Type`, the types with commas of their own; 'none' for nothing. */
function namesIn(line: string): string[] {
  if (line === 'none') return []
  let [depth, flat] = [0, '']
  for (const char of line) {
    if (char === '(') depth += 1
    if (depth === 0) flat += char
    if (char === ')') depth -= 1
  }
  return flat.split(',').map((part) => part.trim().split(' ')[0] ?? '')
}

t.test('every query file is used, and every statement has its file', async (t) => {
  const used = [...new Set(usedNames())].sort()
  t.ok(used.length > 5, 'the program was read')
  t.same(used, fileNames)
})

t.test('a query file says what it does, takes and returns', async (t) => {
  for (const name of fileNames) {
    const text = readSchema(`queries/${name}.sql`)
    const params = /^-- params: (.+)$/m.exec(text)?.[1]
    const rows = /^-- rows: +(.+)$/m.exec(text)?.[1]
    const head = /^(?:--.*\n)+/.exec(text)?.[0].replaceAll(/\n(?:-- )?/g, ' ') ?? ''
    t.match(head, /^-- [A-Z].+?\. /, `${name} begins with a sentence`)
    t.ok(rows, `${name} has a rows line`)
    const body = text.replaceAll(/^--.*$/gm, '')
    const placeholders = Array.from(body.matchAll(/\{(\w+):[^}]+\}/g), (match) => match[1] ?? '')
    t.same(namesIn(params ?? ''), [...new Set(placeholders)].sort(byPosition(params)), name)
    t.notMatch(body, /;\s*$/, `${name} is one statement`)
  }
})

const byPosition =
  (line = '') =>
  (a: string, b: string): number =>
    line.search(new RegExp(`\\b${a}\\b`)) - line.search(new RegExp(`\\b${b}\\b`))

t.test('a statement without a file stops the import', async (t) => {
  t.throws(() => statement('no_such_query'), { code: 'ENOENT' })
})
