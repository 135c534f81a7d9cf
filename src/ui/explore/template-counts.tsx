import { useEffect } from 'preact/hooks'

import { call, pathWith } from '../lib/api.js'
import { counted, percent, short } from '../lib/format.js'
import { Icon } from '../lib/icon.js'
import { useLoad } from '../lib/load.js'
import { only, without } from '../lib/query-edit.js'
import { addressOf, place } from '../lib/router.js'
import { TemplateText } from '../lib/template-text.js'
import { runParams, type FacetReply, type Run } from './answers.js'
import { learnTemplates, templateText } from './templates-known.js'
import { Problem } from '../shell/problem.js'

const MOST = 100

interface TemplateCountsProps {
  readonly run: Run
  readonly runKey: string
  readonly onLine: (line: string) => void
}

/** The matching events by template. A click filters by a template, with Alt excludes it. */
export function TemplateCounts({ run, runKey, onLine }: TemplateCountsProps) {
  const loaded = useLoad(`templates ${runKey}`, (signal) =>
    call<FacetReply>(
      pathWith('/api/logs/facets', { ...runParams(run), fields: 'template', top: MOST }),
      { signal },
    ),
  )
  const { value } = loaded
  useEffect(() => learnTemplates(value?.facets[0]?.values.map((one) => one.value) ?? []))
  if (loaded.error !== null)
    return (
      <section class="found empty">
        <Problem of={loaded} />
      </section>
    )
  const facet = value?.facets[0]
  if (value === null || facet === undefined) return <div class="found waiting" aria-busy="true" />
  const most = facet.values[0]?.count ?? 1
  return (
    <section class="found template-counts" aria-label="Templates">
      <p class="note">
        {counted(facet.distinct, 'template')}
        {facet.distinct > facet.values.length && `, the ${facet.values.length} most frequent`}
      </p>
      <ol class="ranked">
        {facet.values.map(({ value: id, count: n }) => (
          <li key={id}>
            <button
              class="link-row"
              title={`${counted(n, 'occurrence')}. Click to filter by it, with Alt to exclude it.`}
              onClick={({ altKey }) => onLine((altKey ? without : only)(run.line, 'template', id))}
            >
              <span class="bar" style={{ width: `${(n / most) * 100}%` }} />
              <b>{short(n)}</b>
              <small>{percent(n / Math.max(1, value.total))}</small>
              <TemplateText text={templateText(id) || id || '(none)'} />
            </button>
            <a
              class="quiet tiny"
              aria-label="The page of the template"
              title="The page of the template"
              href={addressOf(`/templates/${id}`, place.value.params, { as: null, q: null })}
            >
              <Icon name="chevron-right" size={13} />
            </a>
          </li>
        ))}
      </ol>
    </section>
  )
}
