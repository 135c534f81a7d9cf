import { test } from 'tap'

import { describeApi } from '../../../src/api/description.js'
import { isMultipart } from '../../../src/api/route.js'
import { allRoutes } from '../../../src/api/routes.js'
import { exampleOf } from '../../../src/api/openapi-example.js'
import { createValidator, type FieldError } from '../../../src/api/validation.js'
import { settingsHelp } from '../../../src/config.js'

void test('the schemas of every query, path and form compile', (t) => {
  const validator = createValidator()
  const nothing = { getAll: () => [] }
  for (const { id, query, params, body } of allRoutes) {
    const forms = body !== null && isMultipart(body) ? [body.fields] : []
    for (const schema of [query, ...(params === null ? [] : [params]), ...forms])
      t.doesNotThrow(() => validator.texts('query', schema)(nothing, []), id)
  }
  t.end()
})

void test('the example of every body and reply fits its schema', (t) => {
  const validator = createValidator()
  for (const { id, body, reply, status, produces, examples } of allRoutes) {
    if (body !== null && !isMultipart(body)) {
      const errors: FieldError[] = []
      validator.json(body)(examples?.body ?? exampleOf(body), errors)
      t.same(errors, [], `body of ${id}`)
    }
    if (status === 204 || produces !== undefined) continue
    const errors: FieldError[] = []
    validator.json(reply)(examples?.reply ?? exampleOf(reply), errors)
    t.same(errors, [], `reply of ${id}`)
  }
  t.end()
})

void test('the example of an id, a token or a cursor looks like one', (t) => {
  let ids = 0
  for (const { id, body, reply, examples } of allRoutes) {
    const shown = [
      body === null || isMultipart(body) ? null : (examples?.body ?? exampleOf(body)),
      examples?.reply ?? exampleOf(reply),
    ]
    JSON.stringify(shown, (name, value: unknown) => {
      const isId = /(?:^|_)(?:ids?|token|cursor)$|[^p]_by$/.test(name)
      if (!isId || typeof value !== 'string') return value
      ids += 1
      t.match(value, /\d/, `${id}: ${name}`)
      return value
    })
  }
  t.ok(ids > 100, `${ids} ids`)
  t.end()
})

void test('what must fit a pattern says in words what it must be', (t) => {
  const patterns = allRoutes.flatMap(({ id, query, params, body }) =>
    [...withPattern([query, params, body])].map((schema) => ({ id, schema })),
  )
  t.ok(patterns.length > 50, `${patterns.length} patterns`)
  for (const { id, schema } of patterns)
    t.match(Object(schema).description, /^(?:an?|the|text|\d+|`|lower-case|source,)[ \w]/, id)
  t.end()
})

/** Every schema with a pattern. */
function* withPattern(value: unknown): Generator<object> {
  if (typeof value !== 'object' || value === null) return
  if ('pattern' in value && typeof value.pattern === 'string') yield value
  for (const child of Object.values(value)) yield* withPattern(child)
}

// oxlint-disable typescript/no-explicit-any -- the document
void test('every parameter, tag and operation says what it is', (t) => {
  const { paths, tags } = JSON.parse(JSON.stringify(describeApi('0')))
  const operations = Object.values<any>(paths).flatMap((item) => Object.values<any>(item))
  t.ok(operations.length > 130, `${operations.length} operations`)
  const settings = settingsHelp().map(({ env }) => env)
  for (const { operationId, summary, description, parameters } of operations) {
    for (const [, name = ''] of description.matchAll(/the setting `(\w+)`/g))
      t.ok(settings.includes(name), `${operationId}: ${name}`)
    t.match(summary, /^[A-Z].*[^.]$/, operationId)
    t.notMatch(summary, /\b[Aa] [aeio]|\ban [^aeioAEIO]/, operationId)
    for (const { name, description } of parameters)
      t.match(description, /\S/, `${operationId}: ${name}`)
  }
  for (const { name, description } of tags) t.match(description, /^[A-Z].*[^.]$/, name)
  t.end()
})
