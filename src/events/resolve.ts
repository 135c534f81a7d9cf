import { anyOf, type Query, type ValueTest } from '../query/ast.js'

/** What names in queries stand for. */
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

/** Replaces applications by their sources, and templates and environments by all that their names mean. */
export function resolveNames(query: Query, names: Names): Query {
  switch (query.kind) {
    case 'and':
    case 'or':
      return { kind: query.kind, nodes: query.nodes.map((node) => resolveNames(node, names)) }
    case 'not':
      return { kind: 'not', node: resolveNames(query.node, names) }
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
