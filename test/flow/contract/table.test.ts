import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { describeApi } from '../../../src/api/description.js'
import { allRoutes } from '../../../src/api/routes.js'
import { ERRORS } from '../../../src/model/errors.js'
import { TABLES } from '../../fixtures/contract/rows.js'

const root = fileURLToPath(new URL('../../../../', import.meta.url))

/** Titles of all tests, read from their sources. */
function testTitles(): ReadonlySet<string> {
  const folder = join(root, 'test')
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const titles = new Set<string>()
  for (const file of files.filter((name) => name.endsWith('.test.ts'))) {
    const text = readFileSync(join(folder, file), 'utf8')
    const found = text.matchAll(/\b(?:test|beside)\(\s*(?:'((?:[^'\\]|\\.)*)'|"([^"]*)")/g)
    for (const [, single, double] of found) titles.add(single ?? double ?? '')
  }
  return titles
}

t.test('every row of the interface has a test', (t) => {
  const titles = testTitles()
  t.ok(titles.size > 300, `${titles.size} titles were read`)
  for (const [table, rows] of Object.entries(TABLES)) {
    for (const [row, title] of Object.entries<string>(rows))
      t.ok(titles.has(title), `${table}: ${row}: ${title}`)
  }
  t.end()
})

t.test('every route has a row, and every row of a route is served', (t) => {
  const rows = Object.values(TABLES).flatMap((table) => Object.keys(table))
  const named = rows.filter((row) => /^(?:GET|POST|PUT|PATCH|DELETE) \/(?:api|metrics)/.test(row))
  const served = allRoutes.map(({ method, path }) => `${method.toUpperCase()} ${path}`)
  t.same(served.toSorted(), named.toSorted())
  t.end()
})

t.test('every query parameter of the tables is declared, and no other', (t) => {
  const parametersOf = (id: string): string[] =>
    Object.keys(allRoutes.find((route) => route.id === id)?.query.properties ?? {}).toSorted()
  t.same(parametersOf('listEvents'), Object.keys(TABLES['List-events parameters']).toSorted())
  t.same(parametersOf('timeSeries'), Object.keys(TABLES['Time series parameters']).toSorted())
  t.same(parametersOf('calendar'), Object.keys(TABLES['Calendar parameters']).toSorted())
  t.end()
})

t.test('the guide, the table of the program and OpenAPI agree on the errors', (t) => {
  const guide = readFileSync(join(root, 'src/docs/api.md'), 'utf8')
  const [, section = ''] = /\n## Errors\n([\s\S]*?)(?:\n## |$)/.exec(guide) ?? []
  const listed = [...section.matchAll(/^\| `(\w+)` \| (\d{3}) \| \S.* \|$/gm)].map(
    ([, code = '', status = '']) => `${code} ${status}`,
  )
  const known = Object.entries(ERRORS).map(([code, { status }]) => `${code} ${status}`)
  t.same(listed.toSorted(), known.toSorted())
  const document = JSON.parse(JSON.stringify(describeApi('0')))
  const { code } = document.components.schemas.Error.properties.detail.properties
  t.same(code.enum.map(String).toSorted(), Object.keys(ERRORS).toSorted())
  t.end()
})
