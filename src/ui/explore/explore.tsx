import { useEffect, useRef, useState } from 'preact/hooks'

import { useKeys } from '../lib/keys.js'
import { lazy } from '../lib/lazy.js'
import { useLoad } from '../lib/load.js'
import { addressOf, go, place, setParams } from '../lib/router.js'
import { sidebar } from '../lib/settings.js'
import { toRange, toSpan, type Span } from '../lib/time.js'
import { currentRange, setRange } from '../lib/range.js'
import { TimeRange } from '../shell/time-range.js'
import { TopBar } from '../shell/top-bar.js'
import { askFacets, askFields, askHistogram, type Run } from './answers.js'
import type { Tab } from './detail.js'
import { DEFAULT_COLUMNS, JSON_COLUMNS } from './event-row.js'
import { Fields } from './fields.js'
import { toggleFields } from './fields-toggle.js'
import { HistogramChart } from './histogram.js'
import { QueryBar } from './query-bar.js'
import { Failed, faultOf, Found } from './found.js'
import type { Row } from './rows.js'
import { toShape } from './shapes.js'
import { Summary } from './summary.js'
import { newFirstPaint, type FirstPaint } from './first-paint.js'
import { useCorrection } from './correction.js'

interface Asked {
  readonly key: string
  readonly run: Run
  readonly firstPaint: FirstPaint
}

/** The query in the address, with its times made absolute. */
function useRun(): Asked & { readonly refresh: () => void } {
  const [asked, setAsked] = useState(0)
  const line = place.value.params.get('q') ?? ''
  const range = currentRange()
  const key = `${line}\n${range.from}\n${range.to}\n${asked}`
  const kept = useRef<Asked | null>(null)
  if (kept.current?.key !== key)
    kept.current = {
      key,
      run: { line, span: toSpan(range, Date.now()) },
      firstPaint: newFirstPaint(),
    }
  return { ...kept.current, refresh: () => setAsked((n) => n + 1) }
}

/** @param isBesideRows whether rows are loaded as well */
function useCounts({ run, key, firstPaint }: Asked, by: string, isBesideRows: boolean) {
  if (!isBesideRows) firstPaint.end()
  const histogram = useLoad(
    `${key} ${by}`,
    (signal) => askHistogram(run, { by, buckets: BARS }, signal),
    firstPaint.wait,
  )
  const facets = useLoad(`facets ${key}`, (signal) => askFacets(run, signal), firstPaint.wait)
  const fields = useLoad(
    sidebar.value === 'open' ? `fields ${key}` : null,
    (signal) => askFields(run, signal),
    firstPaint.wait,
  )
  return { histogram, facets, fields }
}

const tabs: ReadonlySet<string> = new Set(['fields', 'context', 'trace', 'why', 'json'])
const isTab = (name: string | null): name is Tab => name !== null && tabs.has(name)
const toTab = (name: string | null): Tab => (isTab(name) ? name : 'fields')

/** The screen Explore: a query, its matches over time, and the events. */
export function Explore() {
  const { refresh, ...asked } = useRun()
  const { run, key, firstPaint } = asked
  const { params, path } = place.value
  const by = params.get('by') ?? 'severity'
  const shape = toShape(params.get('as'))
  const columns = params.get('cols')?.split(',') ?? [...DEFAULT_COLUMNS]
  const fromPath = /^\/events\/(\d+)$/.exec(path)?.[1]
  const id = Number(fromPath ?? params.get('id')) || null
  const why = id === null ? params.get('why') : null
  const tab = toTab(params.get('tab'))
  const query = useRef<HTMLTextAreaElement | null>(null)
  const { histogram, facets, fields } = useCounts(asked, by, shape !== 'templates')
  const correction = useCorrection()

  useEffect(() => {
    document.title = run.line === '' ? 'Explore' : `${run.line} · Explore`
  }, [run.line])
  useKeys('Explore', [
    { key: '/', label: 'write a query', run: () => query.current?.focus() },
    { key: 'r', label: 'refresh', run: refresh },
    { key: 'f', label: 'show or hide the fields', run: toggleFields },
  ])

  const setLine = (line: string): void => {
    if (line === run.line) refresh()
    else go(addressOf('/explore', params, { q: line, id: null, tab: null }))
  }
  const zoom = (span: Span): void => setRange(toRange(span))
  const explain = (span: Span): void => {
    const { from, to } = toRange(span)
    setParams({ why: `${from}..${to}`, id: null })
  }
  const open = (event: number | null): void => {
    const to = addressOf('/explore', params, {
      id: event === null ? null : String(event),
      tab: event === null || tab === 'fields' ? null : tab,
    })
    go(to, { replace: true })
  }
  const setColumn = (name: string): void => toggleColumn(columns, name)
  const incident = (event: Row): void =>
    void import('../later.js').then(({ proposeIncident }) => proposeIncident(event, run, histogram))
  const fault = faultOf(histogram.error)
  return (
    <main class="screen explore">
      <TopBar title="Explore">
        <TimeRange range={currentRange()} onRefresh={refresh} />
      </TopBar>
      <div class="ask">
        <QueryBar line={run.line} span={run.span} fault={fault} onRun={setLine} handle={query} />
        <Summary
          run={run}
          shape={shape}
          columns={columns}
          histogram={histogram}
          facets={facets.value}
          by={by}
          onColumn={setColumn}
        />
        <div class="chart-room" aria-busy={histogram.isLoading}>
          {histogram.error !== null && fault === null && <Failed {...histogram} />}
          {histogram.value !== null && (
            <HistogramChart histogram={histogram.value} onZoom={zoom} onWhy={explain} why={why} />
          )}
        </div>
      </div>
      <div
        class={`body ${id === null && why === null ? '' : 'with-detail'} ${sidebar.value === 'open' ? 'with-fields' : ''}`}
      >
        {sidebar.value === 'open' && (
          <Fields
            run={run}
            runKey={key}
            fields={fields.value}
            facets={facets}
            columns={columns}
            onLine={setLine}
            onColumn={setColumn}
          />
        )}
        {shape === 'templates' ? (
          <TemplateCounts run={run} runKey={key} onLine={setLine} />
        ) : (
          <Found
            run={run}
            runKey={key}
            firstPaint={firstPaint}
            columns={shape === 'JSON' ? JSON_COLUMNS : columns}
            onColumn={shape === 'table' ? setColumn : null}
            openId={id}
            onOpen={open}
            onTab={(name) => setParams({ tab: name }, { replace: true })}
            onLine={setLine}
            onRetry={refresh}
            onIncident={incident}
            correction={correction}
          />
        )}
        {why !== null && (
          <WhyPanel line={run.line} span={why} onClose={() => setParams({ why: null })} />
        )}
        {id !== null && (
          <DetailPanel
            id={id}
            line={run.line}
            tab={tab}
            revision={correction.revision}
            onTab={(name) => setParams({ tab: name === 'fields' ? null : name }, { replace: true })}
            onLine={(line) => go(addressOf('/explore', params, { q: line }))}
            onClose={() => open(null)}
            onOpen={open}
            onCorrect={correction.correct}
            onIncident={incident}
          />
        )}
      </div>
    </main>
  )
}

const WhyPanel = lazy(async () => (await import('../later.js')).WhyPanel)
const TemplateCounts = lazy(async () => (await import('../later.js')).TemplateCounts)
const DetailPanel = lazy(async () => (await import('../later.js')).DetailPanel)

/** The most bars, so that each is visible. */
const BARS = 120

function toggleColumn(columns: readonly string[], name: string): void {
  const next = columns.includes(name)
    ? columns.filter((one) => one !== name)
    : withColumn(columns, name)
  const isDefault = next.join() === DEFAULT_COLUMNS.join()
  setParams({ cols: isDefault ? null : next.join() }, { replace: true })
}

/** Adds a column before the message. */
function withColumn(columns: readonly string[], name: string): readonly string[] {
  const at = columns.indexOf('message')
  return at === -1 ? [...columns, name] : [...columns.slice(0, at), name, ...columns.slice(at)]
}
