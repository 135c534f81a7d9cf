import { useEffect, useRef, useState } from 'preact/hooks'

import type { Run } from '../explore/answers.js'
import { QueryBar } from '../explore/query-bar.js'
import { ApiError } from '../lib/api.js'
import { count, counted, percent, short } from '../lib/format.js'
import { Icon } from '../lib/icon.js'
import { useKeys } from '../lib/keys.js'
import { useLoad } from '../lib/load.js'
import { addressOf, go, place } from '../lib/router.js'
import { zone } from '../lib/settings.js'
import { SparkBars } from '../lib/sparkline.js'
import { TemplateText } from '../lib/template-text.js'
import { ago, fullTime, toSpan } from '../lib/time.js'
import { currentRange } from '../lib/range.js'
import { TimeRange } from '../shell/time-range.js'
import { TopBar } from '../shell/top-bar.js'
import { askTemplates, type Counted, type Template } from './answers.js'
import { Problem } from '../shell/problem.js'

const ORDERS = {
  count: { name: 'Most frequent', by: (a: Counted, b: Counted) => b.count - a.count },
  rare: { name: 'Rarest', by: (a: Counted, b: Counted) => a.count - b.count },
  new: {
    name: 'Newest',
    by: (a: Counted, b: Counted) =>
      (b.template?.first_seen ?? '').localeCompare(a.template?.first_seen ?? ''),
  },
  priority: {
    name: 'Most urgent',
    by: (a: Counted, b: Counted) =>
      (a.template?.priority ?? 'P9').localeCompare(b.template?.priority ?? 'P9') ||
      b.count - a.count,
  },
} as const
type Order = keyof typeof ORDERS
const isOrder = (name: string | null): name is Order => name !== null && name in ORDERS

/** The kinds of messages in a time range: what is constant in them, how often they come, since when. */
export function Templates() {
  const { params } = place.value
  const line = params.get('q') ?? ''
  const range = currentRange()
  const orderParam = params.get('order')
  const order = isOrder(orderParam) ? orderParam : 'count'
  const [asked, setAsked] = useState(0)
  const query = useRef<HTMLTextAreaElement | null>(null)
  const key = `templates ${line} ${range.from} ${range.to} ${asked}`
  const run: Run = { line, span: toSpan(range, Date.now()) }
  const loaded = useLoad(key, (signal) => askTemplates(run, signal))
  const { value, error } = loaded
  useEffect(() => {
    document.title = 'Templates'
  }, [])
  useKeys('Templates', [
    { key: '/', label: 'write a query', run: () => query.current?.focus() },
    { key: 'r', label: 'refresh', run: () => setAsked((n) => n + 1) },
  ])
  const fault =
    error instanceof ApiError ? (error.faults.find(({ path }) => path === 'q') ?? null) : null
  return (
    <main class="screen templates">
      <TopBar title="Templates">
        <TimeRange range={range} onRefresh={() => setAsked((n) => n + 1)} />
      </TopBar>
      <div class="ask">
        <QueryBar
          line={line}
          span={run.span}
          fault={fault}
          onRun={(next) => go(addressOf('/templates', params, { q: next }))}
          handle={query}
        />
        <div class="summary-line">
          <p class="totals" role="status">
            {value !== null && (
              <>
                <strong>{count(value.known)}</strong> {value.known === 1 ? 'template' : 'templates'}
                <span>{counted(value.total, 'occurrence')}</span>
                {value.known > value.rows.length && (
                  <span>the {value.rows.length} most frequent are listed</span>
                )}
              </>
            )}
          </p>
          <div class="segments" role="group" aria-label="Order">
            {Object.keys(ORDERS)
              .filter(isOrder)
              .map((name) => (
                <button
                  key={name}
                  aria-pressed={name === order}
                  onClick={() =>
                    go(addressOf('/templates', params, { order: name === 'count' ? null : name }), {
                      replace: true,
                    })
                  }
                >
                  {ORDERS[name].name}
                </button>
              ))}
          </div>
        </div>
      </div>
      {fault === null && <Problem of={loaded} />}
      {value === null && loaded.error === null && <div class="found waiting" aria-busy="true" />}
      {value !== null && (
        <List
          rows={value.rows.toSorted(ORDERS[order].by)}
          total={value.total}
          newFromMs={value.firstMs < run.span.fromMs ? run.span.fromMs : Infinity}
          params={params}
        />
      )}
    </main>
  )
}

const sureness = ({ model_version: by, confidence }: Template): string =>
  by === 'manual' ? 'set by a person' : `with a confidence of ${percent(confidence)}`

interface ListProps {
  readonly rows: readonly Counted[]
  readonly total: number
  /** A template that was first seen from here on is new. */
  readonly newFromMs: number
  readonly params: URLSearchParams
}

function List({ rows, total, newFromMs, params }: ListProps) {
  if (rows.length === 0)
    return (
      <div class="found empty">
        <Icon name="blocks" size={22} />
        <h2>No templates here</h2>
        <p>Nothing matches in this time range.</p>
      </div>
    )
  return (
    <ul class="template-list">
      {rows.map(({ id, count: n, series, template, change }) => {
        const severity = (template?.severity ?? 'INFO').toLowerCase()
        const isNew = template !== null && Date.parse(template.first_seen) >= newFromMs
        const state = change ?? (isNew ? 'new' : null)
        return (
          <li key={id}>
            <a class={severity} href={addressOf(`/templates/${id}`, params, { order: null })}>
              <b title={count(n)}>{short(n)}</b>
              <small>{percent(total === 0 ? 0 : n / total)}</small>
              <SparkBars values={series} width={112} height={20} class={severity} />
              <span
                class={`badge ${(template?.priority ?? '').toLowerCase()}`}
                title={template === null ? '' : sureness(template)}
              >
                {template?.priority ?? ''}
              </span>
              <span class="text">
                {template === null ? (
                  <code>{id}</code>
                ) : (
                  <TemplateText text={template.template_text} />
                )}
              </span>
              {state !== null && <em class={state}>{state}</em>}
              <span class="source">{template?.source ?? ''}</span>
              <LastSeen at={template?.last_seen ?? null} />
            </a>
          </li>
        )
      })}
    </ul>
  )
}

function LastSeen({ at }: { readonly at: string | null }) {
  if (at === null) return <time />
  const ms = Date.parse(at)
  return (
    <time dateTime={at} title={fullTime(ms, zone.value)}>
      {ago(ms, Date.now())}
    </time>
  )
}
