/*
 * The query language: a line that selects events. `lexer.ts` splits a line into tokens, `parser.ts`
 * builds the tree below from them, `printer.ts` converts a tree back to a line. This folder does no
 * I/O, so that the server and the web page can share it. `src/docs/query-language.md` is the guide
 * for users.
 */

/** A field that every event has. Any other name is an attribute, a path into `tags`. */
export const BUILTIN_FIELDS = [
  'severity',
  'priority',
  'type',
  'source',
  'application',
  'environment',
  'host',
  'message',
  'template',
  'trace',
  'span',
  'id',
  'count',
  'new',
  'has',
] as const
export type BuiltinField = (typeof BUILTIN_FIELDS)[number]

export type Field =
  | { readonly kind: 'builtin'; readonly name: BuiltinField }
  /** The path into `tags`, joined by dots: `user.id`. */
  | { readonly kind: 'attribute'; readonly name: string }

export const isBuiltin = (field: Field, name: BuiltinField): boolean =>
  field.kind === 'builtin' && field.name === name

/** A test of a text. */
export type TextTest =
  /** A whole word, in any case. Punctuation at its ends is ignored, punctuation within it is not: `10.0.0.9`. */
  | { readonly kind: 'word'; readonly text: string }
  /** A word with this beginning, in any case. */
  | { readonly kind: 'prefix'; readonly text: string }
  /** These characters, in any case. */
  | { readonly kind: 'phrase'; readonly text: string }
  /** In the syntax of RE2. */
  | { readonly kind: 'regex'; readonly pattern: string }

/** A test of a field's value. */
export type ValueTest =
  | TextTest
  | { readonly kind: 'equal'; readonly text: string }
  /** Both ends are included: numbers in decimal digits, or severities. */
  | { readonly kind: 'range'; readonly from: string; readonly to: string }

export type Comparison = '>' | '>=' | '<' | '<='

/** A condition on events, as the parser makes it: `and` and `or` hold two or more nodes, none of which is of their own kind. */
export type Query =
  /** Without nodes it matches every event. */
  | { readonly kind: 'and'; readonly nodes: readonly Query[] }
  /** Without nodes, which no line can express, it matches none. */
  | { readonly kind: 'or'; readonly nodes: readonly Query[] }
  | { readonly kind: 'not'; readonly node: Query }
  /** In message, host or trace id. */
  | { readonly kind: 'text'; readonly test: TextTest }
  /** Matches when one of the tests passes. */
  | { readonly kind: 'field'; readonly field: Field; readonly tests: readonly ValueTest[] }
  | {
      readonly kind: 'compare'
      readonly field: Field
      readonly operator: Comparison
      readonly value: string
    }
  /** Matches when the event has the field, or an attribute below it. */
  | { readonly kind: 'has'; readonly field: Field }

export const EVERYTHING: Query = { kind: 'and', nodes: [] }

/** Nodes that must all hold, as one node. */
export function allOf(nodes: readonly Query[]): Query {
  const flat = nodes.flatMap((node) => (node.kind === 'and' ? node.nodes : [node]))
  const [first] = flat
  return flat.length === 1 && first !== undefined ? first : { kind: 'and', nodes: flat }
}

/** Nodes of which one must hold, as one node. */
export function anyOf(nodes: readonly Query[]): Query {
  const flat = nodes.flatMap((node) => (node.kind === 'or' ? node.nodes : [node]))
  const [first] = flat
  return flat.length === 1 && first !== undefined ? first : { kind: 'or', nodes: flat }
}

/** Restricts a query to some sources; null for all. */
export const ofSources = (query: Query, sources: readonly string[] | null): Query =>
  sources === null
    ? query
    : allOf([
        query,
        {
          kind: 'field',
          field: { kind: 'builtin', name: 'source' },
          tests: sources.map((text) => ({ kind: 'equal', text })),
        },
      ])
