import { useEffect } from 'preact/hooks'

import { quoted } from '../../query/printer.js'
import { Icon } from '../lib/icon.js'
import { oneLine, pieces } from '../lib/message.js'
import { clauses, toggled } from '../lib/query-edit.js'
import { addressOf, place } from '../lib/router.js'
import { MOST_OF_VALUE } from './event-row.js'
import type { Detail } from './rows.js'
import { learnTemplates, templateText } from './templates-known.js'

/** The address of a template's most frequent variables. */
export const topValues = (templateId: string): string =>
  addressOf(`/templates/${templateId}`, place.value.params, { q: null, id: null, tab: null })

interface VariablesProps {
  readonly event: Detail
  readonly line: string
  readonly onLine: (line: string) => void
}

/** The variables of the message; the query can be limited to a value or exclude it. */
export function Variables({ event, line, onLine }: VariablesProps) {
  useEffect(() => learnTemplates([event.template_id]))
  const template = templateText(event.template_id)
  const parts = pieces(oneLine(event.message), template)
  const values = parts.flatMap(({ text, isVariable }, i) =>
    isVariable && text.length <= MOST_OF_VALUE ? [{ text, before: parts[i - 1]?.text ?? '' }] : [],
  )
  const asked = clauses(line)
  if (values.length === 0 || asked === null) return null
  const tool = (clause: string, icon: 'plus' | 'minus', title: string) => (
    <button
      class="quiet tiny"
      aria-label={`${title}: ${clause}`}
      title={title}
      aria-pressed={asked.includes(clause)}
      onClick={() => onLine(toggled(line, clause))}
    >
      <Icon name={icon} size={13} />
    </button>
  )
  return (
    <>
      <h3>
        Varies in the message <a href={topValues(event.template_id)}>top values</a>
      </h3>
      <dl class="field-rows">
        {values.map(({ text, before }, i) => (
          <div key={i}>
            <dt title={before}>{before.trim().split(/\s+/).slice(-2).join(' ') || '∗'}</dt>
            <dd>
              <span>{text}</span>
              <span class="tools">
                {tool(quoted(text), 'plus', 'Only events with this text')}
                {tool(`-${quoted(text)}`, 'minus', 'Without events with this text')}
              </span>
            </dd>
          </div>
        ))}
      </dl>
    </>
  )
}
