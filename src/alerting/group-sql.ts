import { attributeText } from '../events/attribute-condition.js'
import type { Bind } from '../events/bind.js'
import type { Redirects } from '../events/filter.js'
import { toField } from '../query/fields.js'
import { toTemplateNumber } from '../events/row-condition.js'

/** SQL of the array of a group's values as texts. */
export function groupsSql(groupBy: readonly string[], bind: Bind, redirects: Redirects): string {
  if (groupBy.length === 0) return "CAST([], 'Array(String)')"
  return `[${groupBy.map((name) => groupSql(name, bind, redirects)).join(', ')}]`
}

const COLUMNS: ReadonlySet<string> = new Set(['source', 'host', 'environment', 'severity'])

function groupSql(name: string, bind: Bind, redirects: Redirects): string {
  if (COLUMNS.has(name)) return `toString(events.${name})`
  if (name !== 'template') return `ifNull(${attributeText(toField(name).name, bind)}, '')`
  const from = bind(
    'Array(UInt64)',
    redirects.map((one) => toTemplateNumber(one.from)),
  )
  const into = bind(
    'Array(UInt64)',
    redirects.map((one) => toTemplateNumber(one.into)),
  )
  const root = `transform(template_id, ${from}, ${into}, template_id)`
  return `if(template_id = 0, '', leftPad(lower(hex(${root})), 16, '0'))`
}
