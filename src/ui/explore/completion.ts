import { completeQuery } from '../../query/completion.js'
import { nameOf, toField } from '../../query/fields.js'
import { printQuery } from '../../query/printer.js'
import { call, pathWith } from '../lib/api.js'
import { short } from '../lib/format.js'
import { recentLines } from '../lib/recent.js'
import type { Span } from '../lib/time.js'
import type { FacetReply, FieldInfo, FieldsReply } from './answers.js'

/** A proposed completion. */
export interface Proposal {
  readonly label: string
  readonly hint: string
  readonly position: number
  readonly length: number
  /** The length of the line for which it was proposed. */
  readonly lineLength: number
  readonly insert: string
  /** Whether it is a complete line, which is run at once. */
  readonly isWhole: boolean
}

const MOST = 12
const KEPT_MS = 30_000
const MOST_KEPT = 100

const kept = new Map<string, { readonly atMs: number; readonly answer: Promise<unknown> }>()

/** Requests a path once, although the same is requested for several letters. */
function asked<T>(path: string): Promise<T> {
  const found = kept.get(path)
  if (found !== undefined && Date.now() - found.atMs < KEPT_MS) return found.answer as Promise<T> // of the same path
  const answer = call<T>(path)
  kept.set(path, { atMs: Date.now(), answer })
  answer.catch(() => kept.delete(path))
  for (const [oldest] of kept) if (kept.size > MOST_KEPT) kept.delete(oldest)
  return answer
}

/** Bounds in whole minutes, so that typing does not change the request. */
const bounds = ({ fromMs, toMs }: Span) => ({
  start_time: new Date(Math.floor(fromMs / 60_000) * 60_000).toISOString(),
  end_time: new Date(Math.ceil(toMs / 60_000) * 60_000).toISOString(),
})

const fieldsOf = async (span: Span): Promise<readonly FieldInfo[]> =>
  (await asked<FieldsReply>(pathWith('/api/logs/fields', bounds(span)))).items

const printed = (name: string, value: string): string =>
  printQuery({
    kind: 'field',
    field: toField(name),
    tests: [{ kind: 'equal', text: value }],
  }).slice(nameOf(toField(name)).length + 1)

async function valuesOf(name: string, span: Span) {
  const path = pathWith('/api/logs/facets', { fields: name, top: 50, ...bounds(span) })
  const { facets } = await asked<FacetReply>(path)
  return facets[0]?.values ?? []
}

/** @returns an empty list when the service does not answer, because completion is optional */
export async function proposalsFor(
  line: string,
  cursor: number,
  span: Span,
): Promise<readonly Proposal[]> {
  if (line.trim() === '') return recentProposals(line)
  const { position, length, expected, field, names } = completeQuery(line, cursor)
  const typed = line.slice(position, cursor).replace(/^"/, '').toLowerCase()
  const at = { position, length, lineLength: line.length, isWhole: false }
  if (expected.includes('value') && field !== null) {
    const name = nameOf(field)
    const fixed = names.map((value) => ({ value, count: null }))
    const all = fixed.length > 0 ? fixed : await valuesOf(name, span).catch(() => [])
    return all
      .filter(({ value }) => value !== '' && value.toLowerCase().includes(typed))
      .slice(0, MOST)
      .map(({ value, count }) => ({
        ...at,
        label: value,
        hint: count === null ? '' : short(count),
        insert: `${printed(name, value)} `,
      }))
  }
  if (!expected.includes('clause') || typed === '') return []
  const known = await fieldsOf(span).catch(() => [])
  const attributes = known.filter(
    ({ kind, field: name }) => kind === 'attribute' && name.toLowerCase().includes(typed),
  )
  return [
    ...names.map((name) => ({ ...at, label: name, hint: 'field', insert: `${name}:` })),
    ...attributes.map(({ field: name, examples }) => ({
      ...at,
      label: name,
      hint: examples.slice(0, 2).map(String).join(', ').slice(0, 40),
      insert: `${name}:`,
    })),
  ].slice(0, MOST)
}

const recentProposals = (line: string): readonly Proposal[] =>
  recentLines().map((insert) => ({
    label: insert,
    hint: 'recent',
    position: 0,
    length: line.length,
    lineLength: line.length,
    insert,
    isWhole: true,
  }))
