import { percent, short } from '../lib/format.js'
import { addressOf } from '../lib/router.js'
import { TemplateText } from '../lib/template-text.js'
import type { Contribution, Explanation } from './insight-answers.js'

interface ContributionsProps {
  readonly explanation: Pick<Explanation, 'templates' | 'sources' | 'hosts' | 'from' | 'to'>
  /** The query, which the links keep. */
  readonly line: string
}

const KINDS = [
  { key: 'templates', title: 'Templates', field: 'template' },
  { key: 'sources', title: 'Sources', field: 'source' },
  { key: 'hosts', title: 'Hosts', field: 'host' },
] as const

/** The templates, sources and hosts with the greatest shares of a change. */
export const Contributions = ({ explanation, line }: ContributionsProps) => (
  <>
    {KINDS.map(({ key, title, field }) => {
      const all = explanation[key]
      if (all.length === 0) return null
      return (
        <section key={key}>
          <h3>{title}</h3>
          <ul class="causes">
            {all.map((one) => (
              <Cause
                key={one.name}
                one={one}
                href={addressOf(
                  '/explore',
                  new URLSearchParams({
                    q: `${line} ${field}:${field === 'template' ? one.name : JSON.stringify(one.name)}`.trim(),
                    from: explanation.from,
                    to: explanation.to,
                  }),
                )}
              />
            ))}
          </ul>
        </section>
      )
    })}
  </>
)

const perHour = (n: number): string => (n < 10 ? n.toFixed(1) : short(Math.round(n)))

const Cause = ({ one, href }: { readonly one: Contribution; readonly href: string }) => (
  <li>
    <a href={href}>
      <span
        class={`bar ${one.has_more_errors ? 'error' : ''}`}
        style={{ width: `${Math.min(1, Math.abs(one.explains)) * 100}%` }}
      />
      <span class="text">
        {one.text === null ? one.name || '(none)' : <TemplateText text={one.text} />}
      </span>
      <small>
        {perHour(one.before)} → {perHour(one.during)} an hour
        {one.has_more_errors && ', more errors'}
      </small>
      <b>{one.explains < 0 ? `−${percent(-one.explains)}` : percent(one.explains)}</b>
    </a>
  </li>
)
