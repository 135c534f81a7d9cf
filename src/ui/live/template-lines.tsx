import { useEffect } from 'preact/hooks'

import { learnTemplates, templateText } from '../explore/templates-known.js'
import { addressOf } from '../lib/router.js'
import { count, percent } from '../lib/format.js'
import { oneLine } from '../lib/message.js'
import { TemplateText } from '../lib/template-text.js'
import { byTemplate, type TailItem } from './tail-buffer.js'

const SHOWN = 200

interface TemplateLinesProps {
  readonly items: readonly TailItem[]
  /** The number of all received events. */
  readonly matched: number
}

/** The newest events as one line with a count for each template, which stays readable at any rate. */
export function TemplateLines({ items, matched }: TemplateLinesProps) {
  const all = byTemplate(items)
  const lines = all.slice(0, SHOWN)
  const total = all.reduce((sum, line) => sum + line.count, 0)
  const most = lines[0]?.count ?? 1
  useEffect(() => learnTemplates(lines.map(({ id }) => id)))
  return (
    <section class="found template-lines" aria-label="Templates of the newest events">
      <p class="note">
        Of the newest {count(total)} events{matched > total && ` of ${count(matched)}`}
        {all.length > SHOWN && `; of ${count(all.length)} templates the ${SHOWN} most frequent`}
      </p>
      <ul class="ranked">
        {lines.map(({ id, count: n, newest }) => (
          <li key={id} class={newest.severity.toLowerCase()}>
            <a href={addressOf('/explore', new URLSearchParams({ q: `template:${id}` }))}>
              <span
                class={`bar ${newest.severity.toLowerCase()}`}
                style={{ width: `${(n / most) * 100}%` }}
              />
              <b>{count(n)}</b>
              <small>{percent(n / total)}</small>
              <span>
                <TemplateText text={templateText(id) || oneLine(newest.message, 300)} />
              </span>
              <small>{newest.source}</small>
            </a>
          </li>
        ))}
      </ul>
    </section>
  )
}
