import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'

import { askHistogram, runParams, type FacetReply, type Run } from '../explore/answers.js'
import { DEFAULT_COLUMNS, EventRow, tracksOf } from '../explore/event-row.js'
import { HistogramChart } from '../explore/histogram.js'
import type { Page } from '../explore/rows.js'
import { learnTemplates, templateText } from '../explore/templates-known.js'
import { call, pathWith } from '../lib/api.js'
import { count, counted, short } from '../lib/format.js'
import { useLoad } from '../lib/load.js'
import { only } from '../lib/query-edit.js'
import { addressOf, go } from '../lib/router.js'
import type { SavedView } from '../lib/saved-view.js'
import { zone } from '../lib/settings.js'
import { TemplateText } from '../lib/template-text.js'
import { toRange, toSpan, type Range } from '../lib/time.js'
import { Problem } from '../shell/problem.js'

const BARS = 60
const TOP = 8
const ROWS = 10

interface BoardPanelProps {
  readonly view: SavedView
  /** The range of the whole dashboard; null for the panel's own. */
  readonly range: Range | null
  /** Changes when all panels are to be reloaded. */
  readonly turn: number
  /** The controls beside the title. */
  readonly children: ComponentChildren
}

interface ContentProps {
  readonly run: Run
  readonly runKey: string
  readonly params: URLSearchParams
  /** The address in Explore, with other parameters where given. */
  readonly explore: (patch: Readonly<Record<string, string>>) => string
}

/** A saved view as a panel: over time, its most frequent values, a number, or its newest events. */
export function BoardPanel({ view, range, turn, children }: BoardPanelProps) {
  const params = new URLSearchParams(view.params)
  const own = { from: params.get('from') ?? 'now-1h', to: params.get('to') ?? 'now' }
  const { from, to } = range ?? own
  const run: Run = {
    line: params.get('q') ?? '',
    span: toSpan({ from, to }, Date.now()),
  }
  const content: ContentProps = {
    run,
    runKey: `${view.id} ${view.params} ${from} ${to} ${turn}`,
    params,
    explore: (patch) => addressOf('/explore', params, { from, to, ...patch }),
  }
  return (
    <section class={`card panel-${view.kind}`}>
      <header>
        <h2>
          <a href={content.explore({})}>{view.name}</a>
        </h2>
        {children}
      </header>
      <Content {...content} kind={view.kind} />
    </section>
  )
}

function Content({ kind, ...content }: ContentProps & { readonly kind: SavedView['kind'] }) {
  switch (kind) {
    case 'series':
      return <Series {...content} />
    case 'top':
      return <Top {...content} />
    case 'number':
      return <Total {...content} />
    case 'table':
    case 'view':
      return <Newest {...content} />
  }
}

function Series({ run, runKey, params, explore }: ContentProps) {
  const by = params.get('by') ?? 'severity'
  const loaded = useLoad(runKey, (signal) => askHistogram(run, { by, buckets: BARS }, signal))
  const { value } = loaded
  if (loaded.error !== null) return <Problem of={loaded} />
  return (
    <div class="chart-room">
      {value !== null && (
        <HistogramChart histogram={value} onZoom={(span) => go(explore({ ...toRange(span) }))} />
      )}
    </div>
  )
}

function Top({ run, runKey, params, explore }: ContentProps) {
  const by = params.get('by') ?? 'source'
  const loaded = useLoad(runKey, (signal) =>
    call<FacetReply>(pathWith('/api/logs/facets', { ...runParams(run), fields: by, top: TOP }), {
      signal,
    }),
  )
  const { value } = loaded
  const values = value?.facets[0]?.values ?? []
  const most = values[0]?.count ?? 1
  useEffect(() => {
    if (by === 'template') learnTemplates(values.map((one) => one.value))
  })
  if (loaded.error !== null) return <Problem of={loaded} />
  return (
    <ul class="ranked">
      {value !== null && values.length === 0 && <li class="note">No events.</li>}
      {values.map((one) => (
        <li key={one.value}>
          <a href={explore({ q: only(run.line, by, one.value) })}>
            <span class="bar" style={{ width: `${(one.count / most) * 100}%` }} />
            {by === 'template' ? (
              <TemplateText text={templateText(one.value) || one.value} />
            ) : (
              <span>{one.value || '(none)'}</span>
            )}
            <b>{short(one.count)}</b>
          </a>
        </li>
      ))}
    </ul>
  )
}

function Total({ run, runKey }: ContentProps) {
  const loaded = useLoad(runKey, async (signal) => {
    const { fromMs, toMs } = run.span
    const before = { line: run.line, span: { fromMs: 2 * fromMs - toMs, toMs: fromMs } }
    const [now, earlier] = await Promise.all([
      askHistogram(run, { buckets: 1 }, signal),
      askHistogram(before, { buckets: 1 }, signal),
    ])
    return { now, earlier }
  })
  const { value } = loaded
  if (loaded.error !== null) return <Problem of={loaded} />
  if (value === null) return <p class="figure"> </p>
  const { now, earlier } = value
  return (
    <>
      <p class="figure" title={count(now.total)}>
        {short(now.total)}
      </p>
      <p class="note">
        {counted(now.unique_events, 'event')}; {short(earlier.total)} in the span before
      </p>
    </>
  )
}

function Newest({ run, runKey, params, explore }: ContentProps) {
  const columns = params.get('cols')?.split(',') ?? [...DEFAULT_COLUMNS]
  const loaded = useLoad(runKey, (signal) =>
    call<Page>(pathWith('/api/logs', { ...runParams(run), limit: ROWS }), { signal }),
  )
  const { value } = loaded
  const items = value?.items ?? []
  useEffect(() => learnTemplates(items.map((row) => row.template_id)))
  if (loaded.error !== null) return <Problem of={loaded} />
  return (
    <div
      class="events"
      role="grid"
      aria-label="Newest events"
      style={`--columns: ${tracksOf(columns)}; --row: 24px; --time-width: 6.2rem`}
      onClick={({ target }) => {
        const row = target instanceof Element ? target.closest<HTMLElement>('[data-index]') : null
        const pressed = items[Number(row?.dataset['index'] ?? -1)]
        if (pressed !== undefined) go(explore({ id: String(pressed.id) }))
      }}
    >
      {value !== null && items.length === 0 && <p class="note">No events.</p>}
      {items.map((row, index) => (
        <EventRow
          key={row.id}
          row={row}
          index={index}
          columns={columns}
          template={templateText(row.template_id)}
          isCurrent={false}
          isOpen={false}
          withDay={false}
          zone={zone.value}
          idPrefix={`panel-${row.id}`}
        />
      ))}
    </div>
  )
}
