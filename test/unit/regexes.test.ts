/** No regular expression of the program takes more than linear time, whatever it is given. */
import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseSync, Visitor } from 'oxc-parser'
import t from 'tap'
import { findAttack } from '../support/regex-attack.js'

const SRC = new URL('../../../src/', import.meta.url)
const BUILT = new URL('../../src/', import.meta.url)

interface Found {
  readonly place: string
  readonly regex: RegExp
}

/** Those written down in the sources, and the files that make more while they are loaded. */
function inSources(): { readonly literals: Found[]; readonly makers: string[]; files: number } {
  const literals: Found[] = []
  const makers: string[] = []
  const names = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  const files = names.filter(
    (name) => /(?<!\.d)\.(?:ts|js)$/.test(name) && !/assembly\/.*words/.test(name),
  )
  for (const name of files) {
    const text = readFileSync(new URL(name, SRC), 'utf8')
    const visitor = new Visitor({
      Literal(node) {
        if (!('regex' in node)) return
        const line = text.slice(0, node.start).split('\n').length
        const regex = new RegExp(node.regex.pattern, node.regex.flags)
        literals.push({ place: `${name}:${line}`, regex })
      },
      NewExpression({ callee }) {
        if (callee.type === 'Identifier' && callee.name === 'RegExp') makers.push(name)
      },
    })
    visitor.visit(parseSync(name, text).program)
  }
  return { literals, makers: [...new Set(makers)], files: files.length }
}

/** Those made while the modules are loaded. */
async function made(makers: readonly string[]): Promise<Found[]> {
  const found: Found[] = []
  const Native = RegExp
  globalThis.RegExp = new Proxy(Native, {
    construct(target, args: [string, string?]) {
      const regex = new target(...args)
      const place = /\/src\/[^\s)]*/.exec(String(new Error().stack))?.[0]
      if (place !== undefined) found.push({ place, regex })
      return regex
    },
  })
  try {
    for (const name of makers)
      await import(fileURLToPath(new URL(name.replace(/\.ts$/, '.js'), BUILT)))
  } finally {
    globalThis.RegExp = Native
  }
  return found
}

t.test('the search finds what is known to be slow', async (t) => {
  const slow = [
    /([T ]\d{2}:\d{2}\S*) (\d{2}:?\d{2})$/,
    /\s*\/\s*/g,
    /\/+$/,
    /^([[(<{"'*-]*)(?:[a-z_]+:)?([A-Za-z]+)([\])>}"'*:,!-]*)(.*)$/,
    /'(?:[^'\\]|\\.)*'/g,
    /\beyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]*/g,
  ]
  // A search draws its attacks at random and measures time, so one may miss.
  const isFound = (regex: RegExp): boolean =>
    Array.from({ length: 20 }).some(() => findAttack(regex) !== null)
  for (const regex of slow) t.ok(isFound(regex), String(regex))
})

t.test('no regular expression is slow', async (t) => {
  const { literals, makers, files } = inSources()
  t.ok(files > 250, `${files} files`)
  t.ok(literals.length > 130, `${literals.length} are written down`)
  const others = await made(makers.filter((name) => name !== 'api/openapi-example.ts'))
  t.ok(others.length > 30, `${others.length} are made`)
  const all = new Map([...literals, ...others].map((one) => [String(one.regex), one]))
  for (const { place, regex } of all.values()) {
    const attack = findAttack(regex)
    if (attack !== null) t.fail(`${place} ${String(regex).slice(0, 100)}`, { attack })
  }
  t.pass(`${all.size} regular expressions`)
})
