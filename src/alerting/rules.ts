import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'

import { AppError } from '../model/errors.js'
import type { Records } from '../records/newest-first.js'
import { pageNewestFirst, type PageQuery } from '../records/page.js'
import { planRule, type Rule, type RuleFields } from './rule.js'

interface RuleDeps {
  readonly records: Records<Rule>
  readonly nowMs?: () => number
}

export type Rules = ReturnType<typeof createRules>

const MAX_RULES = 2_000

/** The alert rules, in memory and written through. Every change may reject with `dependency_unavailable`. */
export function createRules({ records, nowMs = Date.now }: RuleDeps) {
  const rules = {
    list: (): readonly Rule[] => records.list(),
    page: (query: PageQuery) => pageNewestFirst(records.list(), query),
    /** @throws AppError not_found */
    get: (id: string): Rule => records.get(id) ?? refuseMissing(id),
    /** @throws AppError validation_error, overloaded */
    async create(userId: string, fields: RuleFields): Promise<Rule> {
      if (records.size >= MAX_RULES)
        throw new AppError('overloaded', `there are ${MAX_RULES} alert rules, which is the most`)
      const createdAtMs = nowMs()
      const facts = { createdAtMs, updatedAtMs: createdAtMs, updatedBy: userId, version: 1 }
      const rule = checked({ id: randomUUID(), ...facts, fields })
      return (await records.update(rule.id, () => rule)) ?? rule
    },
    /** Replaces what a user sets. @throws AppError not_found, validation_error */
    async replace(userId: string, id: string, fields: RuleFields): Promise<Rule> {
      rules.get(id)
      const rule = await records.update(id, (current) => {
        if (current === null || isDeepStrictEqual(current.fields, fields)) return current
        const version = current.version + 1
        return checked({ ...current, version, updatedAtMs: nowMs(), updatedBy: userId, fields })
      })
      return rule ?? refuseMissing(id)
    },
    /** @throws AppError not_found */
    async remove(id: string): Promise<void> {
      if (!(await records.remove(id))) refuseMissing(id)
    },
    /**
     * Takes over exported rules; one with the name of another replaces it.
     *
     * @throws AppError validation_error before anything is changed
     */
    async import(userId: string, all: readonly RuleFields[]): Promise<readonly Rule[]> {
      all.forEach((fields, i) => checked(blank(fields), `rules/${i}/`))
      const made: Rule[] = []
      for (const fields of all) {
        const known = records.list().find(({ fields: { name } }) => name === fields.name)
        made.push(
          known === undefined
            ? await rules.create(userId, fields)
            : await rules.replace(userId, known.id, fields),
        )
      }
      return made
    },
  }
  return rules
}

const blank = (fields: RuleFields): Rule => ({
  id: '',
  version: 1,
  createdAtMs: 0,
  updatedAtMs: 0,
  updatedBy: '',
  fields,
})

function checked(rule: Rule, at = ''): Rule {
  const plan = planRule(rule)
  if (!('path' in plan)) return rule
  const path = `${at}${plan.path}`
  throw new AppError('validation_error', `invalid: ${path}`, {
    details: { errors: [{ in: 'body', path, message: plan.message }] },
  })
}

function refuseMissing(id: string): never {
  throw new AppError('not_found', 'there is no such alert rule', { details: { rule_id: id } })
}
