import { anyOf, type Query, type ValueTest } from '../query/ast.js'

/** The meaning of names in queries. */
export interface Names {
  /** Every application, with the sources that are linked to it. */
  readonly applications: () => readonly {
    readonly name: string
    readonly sources: readonly string[]
  }[]
  /** The template and every id that was merged into it. */
  readonly templateAliases: (id: string) => readonly string[]
}

const ENVIRONMENTS: ReadonlyMap<string, readonly string[]> = new Map([
  ['prod', ['prod', 'production']],
  ['staging', ['staging', 'stage']],
  ['dev', ['dev', 'development']],
])

const NO_EVENT: Query = anyOf([])

/**
 * Replaces applications by their sources, and templates and environments by everything that they
 * stand for. Returns the same object when nothing is replaced, so that a cache keyed by it still
 * hits.
 */
export function resolveNames(query: Query, names: Names): Query {
  switch (query.kind) {
    case 'and':
    case 'or':
      return resolveAll(query, names)
    case 'not': {
      const node = resolveNames(query.node, names)
      return node === query.node ? query : { kind: 'not', node }
    }
    case 'field':
      return query.field.kind === 'builtin' ? resolveField(query, names) : query
    case 'has':
      if (query.field.kind !== 'builtin' || query.field.name !== 'application') return query
      return ofSources(names.applications().flatMap(({ sources }) => sources))
    case 'text':
    case 'compare':
      return query
  }
}

function resolveAll(query: Extract<Query, { kind: 'and' | 'or' }>, names: Names): Query {
  const nodes = query.nodes.map((node) => resolveNames(node, names))
  return nodes.every((node, i) => node === query.nodes[i]) ? query : { kind: query.kind, nodes }
}

function resolveField(query: Extract<Query, { kind: 'field' }>, names: Names): Query {
  switch (query.field.name) {
    case 'application':
      return ofSources(
        names
          .applications()
          .filter(({ name }) => query.tests.some((test) => isNamed(name, test)))
          .flatMap(({ sources }) => sources),
      )
    case 'template':
      return { ...query, tests: widened(query.tests, names.templateAliases) }
    case 'environment':
      return { ...query, tests: widened(query.tests, (name) => ENVIRONMENTS.get(name) ?? [name]) }
    default:
      return query
  }
}

const ofSources = (sources: readonly string[]): Query =>
  sources.length === 0
    ? NO_EVENT
    : {
        kind: 'field',
        field: { kind: 'builtin', name: 'source' },
        tests: sources.map((text) => ({ kind: 'equal', text })),
      }

const isNamed = (name: string, test: ValueTest): boolean =>
  (test.kind === 'equal' && test.text === name) ||
  (test.kind === 'prefix' && name.startsWith(test.text))

const widened = (
  tests: readonly ValueTest[],
  meanings: (text: string) => readonly string[],
): readonly ValueTest[] =>
  tests.flatMap((test): readonly ValueTest[] =>
    test.kind === 'equal' ? meanings(test.text).map((text) => ({ kind: 'equal', text })) : [test],
  )
