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
import { askTemplates, type Counted, type InOrder, type Template } from './answers.js'
import { Problem } from '../shell/problem.js'

interface Order {
  readonly name: string
  /** Which rows are listed when there are more. */
  readonly listed: string
  readonly by: InOrder | null
}

const ORDERS = {
  count: { name: 'Most frequent', listed: 'most frequent', by: null },
  rare: { name: 'Rarest', listed: 'rarest', by: (a, b) => a.count - b.count },
  new: {
    name: 'Newest',
    listed: 'newest',
    by: (a, b) => (b.template?.first_seen ?? '').localeCompare(a.template?.first_seen ?? ''),
  },
  priority: {
    name: 'Most urgent',
    listed: 'most urgent',
    by: (a, b) =>
      (a.template?.priority ?? 'P9').localeCompare(b.template?.priority ?? 'P9') ||
      b.count - a.count,
  },
} as const satisfies Readonly<Record<string, Order>>
type OrderName = keyof typeof ORDERS
const isOrder = (name: string | null): name is OrderName =>
  name !== null && Object.hasOwn(ORDERS, name)

/** The templates of a time range with their counts and first occurrences. */
export function Templates() {
  const { params } = place.value
  const line = params.get('q') ?? ''
  const range = currentRange()
  const orderParam = params.get('order')
  const order = isOrder(orderParam) ? orderParam : 'count'
  const [asked, setAsked] = useState(0)
  const query = useRef<HTMLTextAreaElement | null>(null)
  const key = `templates ${line} ${range.from} ${range.to} ${order} ${asked}`
  const run: Run = { line, span: toSpan(range, Date.now()) }
  const loaded = useLoad(key, (signal) => askTemplates(run, ORDERS[order].by, signal))
  const { value, error } = loaded
  useEffect(() => {
    document.title = 'Templates'
  }, [])
  useKeys('Templates', [
    { key: '/', label: 'write a query', run: () => query.current?.focus() },
    { key: 'r', label: 'refresh', run: () => setAsked((n) => n + 1) },
    { key: 'j', label: 'next template', run: () => moveFocus(1) },
    { key: 'k', label: 'previous template', run: () => moveFocus(-1) },
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
                  <span>
                    the {value.rows.length} {ORDERS[order].listed} are listed
                    {value.known > value.compared &&
                      order !== 'count' &&
                      `, of the ${count(value.compared)} most frequent`}
                  </span>
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
          rows={value.rows}
          total={value.total}
          newFromMs={value.firstMs < run.span.fromMs ? run.span.fromMs : Infinity}
          params={params}
        />
      )}
    </main>
  )
}

/** Moves the focus to the next link of the list or the one before, or to the first. */
function moveFocus(by: 1 | -1): void {
  const links = [...document.querySelectorAll<HTMLAnchorElement>('.template-list a')]
  const at = links.findIndex((link) => link === document.activeElement)
  links[at === -1 ? 0 : at + by]?.focus()
}

interface ListProps {
  readonly rows: readonly Counted[]
  readonly total: number
  /** A template that was first seen at this time or later is new. */
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
      <li class="head" aria-hidden="true">
        <span>Count</span>
        <span>Share</span>
        <span>Over time</span>
        <span title="Priority, and how sure the model is of it">Priority</span>
        <span class="text">Template</span>
        <span class="source">Source</span>
        <span class="first">First seen</span>
        <span>Last seen</span>
      </li>
      {rows.map((row) => (
        <Row key={row.id} {...{ row, total, newFromMs, params }} />
      ))}
    </ul>
  )
}

interface RowProps extends Omit<ListProps, 'rows'> {
  readonly row: Counted
}

function Row({ row, total, newFromMs, params }: RowProps) {
  const { id, count: n, series, template, change } = row
  const severity = (template?.severity ?? 'INFO').toLowerCase()
  const isNew = template !== null && Date.parse(template.first_seen) >= newFromMs
  const state = change ?? (isNew ? 'new' : null)
  return (
    <li>
      <a class={severity} href={addressOf(`/templates/${id}`, params, { order: null })}>
        <b title={count(n)}>{short(n)}</b>
        <small>{percent(total === 0 ? 0 : n / total)}</small>
        <SparkBars values={series} width={112} height={20} class={severity} />
        {template === null ? <span /> : <Sure template={template} />}
        <span class="text">
          {template === null ? <code>{id}</code> : <TemplateText text={template.template_text} />}
        </span>
        {state !== null && <em class={state}>{state}</em>}
        <span class="source">{template?.source ?? ''}</span>
        <Seen class="first" at={template?.first_seen ?? null} />
        <Seen at={template?.last_seen ?? null} />
      </a>
    </li>
  )
}

/** The priority and its confidence. */
const Sure = ({ template: { priority, confidence, model_version: by } }: SureProps) => (
  <span class="sure">
    <span class={`badge ${priority.toLowerCase()}`}>{priority}</span>{' '}
    <i title={by === 'manual' ? 'by a person' : 'confidence'}>
      {by === 'manual' ? 'set' : percent(confidence)}
    </i>
  </span>
)

interface SureProps {
  readonly template: Template
}

interface SeenProps {
  readonly at: string | null
  readonly class?: string
}

function Seen({ at, class: name = '' }: SeenProps) {
  if (at === null) return <time class={name} />
  const ms = Date.parse(at)
  return (
    <time class={name} dateTime={at} title={fullTime(ms, zone.value)}>
      {ago(ms, Date.now())}
    </time>
  )
}
