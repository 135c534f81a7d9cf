import { AppError } from '../model/errors.js'
import { createDocuments, type Documents } from '../records/documents.js'
import type { Records } from '../records/newest-first.js'
import type { Channels } from './channel.js'
import { excessOf, type RuleFault } from './counter.js'
import { planRule, type Plan, type Rule } from './rule.js'
import type { RuleFields } from './rule-fields.js'

interface RuleDeps {
  readonly records: Records<Rule>
  readonly channels: Pick<Channels, 'find'>
  readonly nowMs?: () => number
}

export interface Rules extends Documents<RuleFields> {
  /**
   * Imports exported rules. A rule replaces an existing one with its name; of several with one name
   * the first replaces the oldest.
   *
   * @throws AppError validation_error before anything is changed
   */
  readonly import: (userId: string, all: readonly RuleFields[]) => Promise<readonly Rule[]>
}

export const RULE_BOUND = { most: 2_000, nouns: 'alert rules' }
const EARLIER_VERSIONS = 10

/** The alert rules, held in memory and written through to ClickHouse. Every change may reject with `dependency_unavailable`. */
export function createRules({ channels, ...deps }: RuleDeps): Rules {
  const checked = (fields: RuleFields, before: RuleFields | null, at = ''): RuleFields => {
    checkChannels(fields, { before, channels, at })
    return checkedPlan(fields, at).rule.fields
  }
  const rules = createDocuments<RuleFields>({
    ...deps,
    noun: 'alert rule',
    idName: 'rule_id',
    keeps: EARLIER_VERSIONS,
    toStored: (fields, _, before) => checked(fields, before),
  })
  return {
    ...rules,
    async import(userId, all) {
      const pairs = withReplaced(all, inOrder(rules.list()))
      pairs.forEach(([fields, known], i) => checked(fields, known?.fields ?? null, `rules.${i}.`))
      const made: Rule[] = []
      for (const [fields, known] of pairs)
        made.push(
          known === null
            ? await rules.create(userId, fields)
            : await rules.replace(userId, known.id, fields),
        )
      return made
    },
  }
}

/**
 * Sorts rules by name, and those of one name by age, oldest first. Exports have this order, by which
 * an import distinguishes rules of one name.
 */
export const inOrder = (rules: readonly Rule[]): readonly Rule[] =>
  rules.toSorted(
    (a, b) =>
      compareTexts(a.fields.name, b.fields.name) ||
      a.createdAtMs - b.createdAtMs ||
      compareTexts(a.id, b.id),
  )

const compareTexts = (a: string, b: string): number => (a < b ? -1 : Number(a > b))

/** Each rule with the one that it replaces. */
function withReplaced(
  all: readonly RuleFields[],
  rules: readonly Rule[],
): readonly (readonly [RuleFields, Rule | null])[] {
  const left = [...rules]
  return all.map((fields) => {
    const at = left.findIndex(({ fields: { name } }) => name === fields.name)
    return [fields, at < 0 ? null : (left.splice(at, 1)[0] ?? null)]
  })
}

/**
 * Checks that the channels exist. A rule may keep a deleted one that it had. A channel that is
 * deleted at the same moment gets no notices, and the history says so.
 *
 * @throws AppError validation_error
 */
function checkChannels(
  { notify }: RuleFields,
  known: {
    readonly before: RuleFields | null
    readonly channels: Pick<Channels, 'find'>
    readonly at: string
  },
): void {
  const had = known.before?.notify?.channels ?? []
  const unknown =
    notify?.channels.findIndex((id) => !had.includes(id) && known.channels.find(id) === null) ?? -1
  if (unknown >= 0)
    throw wrong(
      { path: `notify.channels.${unknown}`, message: 'is not the id of a channel' },
      known.at,
    )
}

/** @throws AppError validation_error */
export function checkedPlan(fields: RuleFields, at = ''): Plan {
  const plan = planRule(asRule(fields))
  if ('path' in plan) throw wrong(plan, at)
  const excess = excessOf(fields)
  if (excess !== null) throw wrong(excess, at)
  return plan
}

function wrong(fault: RuleFault, at: string): AppError {
  const path = `${at}${fault.path}`
  return new AppError('validation_error', `invalid: ${path}`, {
    details: { errors: [{ in: 'body', ...fault, path }] },
  })
}

/** Wraps fields as a rule that is not stored. */
export const asRule = (fields: RuleFields): Rule => ({
  id: '',
  version: 1,
  createdAtMs: 0,
  updatedAtMs: 0,
  updatedBy: '',
  fields,
})
