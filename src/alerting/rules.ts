import { AppError } from '../model/errors.js'
import { createDocuments, type Documents } from '../records/documents.js'
import type { Records } from '../records/newest-first.js'
import { planRule, type Rule } from './rule.js'
import type { RuleFields } from './rule-fields.js'

interface RuleDeps {
  readonly records: Records<Rule>
  readonly nowMs?: () => number
}

export interface Rules extends Documents<RuleFields> {
  /**
   * Takes over exported rules; one with the name of another replaces it.
   *
   * @throws AppError validation_error before anything is changed
   */
  readonly import: (userId: string, all: readonly RuleFields[]) => Promise<readonly Rule[]>
}

const MAX_RULES = 2_000
const EARLIER_VERSIONS = 10

/** The alert rules, in memory and written through. Every change may reject with `dependency_unavailable`. */
export function createRules(deps: RuleDeps): Rules {
  const rules = createDocuments<RuleFields>({
    ...deps,
    noun: 'alert rule',
    idName: 'rule_id',
    most: MAX_RULES,
    keeps: EARLIER_VERSIONS,
    toStored: (fields) => checkedFields(fields),
  })
  return {
    ...rules,
    async import(userId, all) {
      all.forEach((fields, i) => checkedFields(fields, `rules/${i}/`))
      const made: Rule[] = []
      for (const fields of all) {
        const known = rules.list().find(({ fields: { name } }) => name === fields.name)
        made.push(
          known === undefined
            ? await rules.create(userId, fields)
            : await rules.replace(userId, known.id, fields),
        )
      }
      return made
    },
  }
}

/** @throws AppError validation_error */
export function checkedFields(fields: RuleFields, at = ''): RuleFields {
  const plan = planRule(asRule(fields))
  if (!('path' in plan)) return fields
  const path = `${at}${plan.path}`
  throw new AppError('validation_error', `invalid: ${path}`, {
    details: { errors: [{ in: 'body', path, message: plan.message }] },
  })
}

/** A rule that is not stored. */
export const asRule = (fields: RuleFields): Rule => ({
  id: '',
  version: 1,
  createdAtMs: 0,
  updatedAtMs: 0,
  updatedBy: '',
  fields,
})
