import { useEffect, useState } from 'preact/hooks'

import { askHistogram, runParams, type FacetReply, type Run } from '../explore/answers.js'
import { useCorrection } from '../explore/correction.js'
import { HistogramChart } from '../explore/histogram.js'
import type { Row } from '../explore/rows.js'
import { call, pathWith } from '../lib/api.js'
import { count, percent, short } from '../lib/format.js'
import { Icon } from '../lib/icon.js'
import { useLoad } from '../lib/load.js'
import { oneLine, pieces } from '../lib/message.js'
import { clauseLine, without } from '../lib/query-edit.js'
import { addressOf, place } from '../lib/router.js'
import { may } from '../lib/session.js'
import { zone } from '../lib/settings.js'
import { TemplateText } from '../lib/template-text.js'
import { fullTime, shortTime, toRange, toSpan } from '../lib/time.js'
import { currentRange, setRange } from '../lib/range.js'
import { PriorityChoice } from '../shell/priority-choice.js'
import { TimeRange } from '../shell/time-range.js'
import { TopBar } from '../shell/top-bar.js'
import type { Template } from './answers.js'
import { Corrections, NoteOf, type Correction, type Note } from './notes.js'
import { Problem } from '../shell/problem.js'

interface Detail extends Template {
  readonly sample_events: readonly Row[]
  readonly variables: readonly {
    readonly index: number
    readonly values: readonly { readonly value: string; readonly count: number }[]
    /** Null unless all values are numbers. */
    readonly numbers: { readonly p50: number; readonly p95: number; readonly unit: string } | null
  }[]
  readonly note: Note | null
  readonly corrections: readonly Correction[]
}

/** The screen of one template: its counts by hour, its hosts, the values of its variables, and its newest events. */
export function TemplateScreen({ id }: { readonly id: string }) {
  const { params } = place.value
  const range = currentRange()
  const [asked, setAsked] = useState(0)
  const correction = useCorrection()
  const detail = useLoad(`template ${id} ${asked} ${correction.revision}`, (signal) =>
    call<Detail>(`/api/logs/meta/templates/${encodeURIComponent(id)}`, { signal }),
  )
  const run: Run = { line: `template:${id}`, span: toSpan(range, Date.now()) }
  const key = `${id} ${range.from} ${range.to} ${asked}`
  const histogram = useLoad(`hours ${key}`, (signal) =>
    askHistogram(run, { by: 'severity', buckets: 120 }, signal),
  )
  const { value } = detail
  useEffect(() => {
    document.title = value === null ? 'Template' : `${value.template_text} · Template`
  }, [value])
  const shared = { from: params.get('from'), to: params.get('to') }
  const explore = (line: string): string =>
    addressOf('/explore', new URLSearchParams(), { ...shared, q: line })
  return (
    <main class="screen template">
      <TopBar title="Template">
        <TimeRange range={range} onRefresh={() => setAsked((n) => n + 1)} />
      </TopBar>
      <div class="scroll">
        <a class="back" href={addressOf('/templates', params)}>
          <Icon name="chevron-left" size={14} /> Templates
        </a>
        <Problem of={detail} what="template" />
        {value !== null && (
          <>
            <Head
              detail={value}
              onPriority={(priority) => {
                const [newest] = value.sample_events
                if (newest !== undefined) correction.correct(newest, priority)
              }}
            />
            <p class="links">
              <a href={explore(run.line)}>
                <Icon name="search" size={14} /> Its events
              </a>
              <a href={addressOf('/live', new URLSearchParams({ q: run.line }))}>
                <Icon name="activity" size={14} /> Live
              </a>
              {may('manager') && (
                <a
                  href={pathWith('/alerts/rules/new', {
                    q: run.line,
                    name: value.template.replaceAll('<*>', '*'),
                  })}
                >
                  <Icon name="bell" size={14} /> Alert on this
                </a>
              )}
              <a href={explore(without('', 'template', id))}>
                <Icon name="minus" size={14} /> All others
              </a>
            </p>
            <div class="panels">
              <section class="card wide">
                <h2>
                  {histogram.value === null
                    ? ' '
                    : `${count(histogram.value.total)} in this time range`}
                </h2>
                <Problem of={histogram} />
                <div class="chart-room">
                  {histogram.value !== null && (
                    <HistogramChart
                      histogram={histogram.value}
                      onZoom={(span) => setRange(toRange(span))}
                    />
                  )}
                </div>
              </section>
              <Variables detail={value} />
              <div class="stack">
                <Hosts run={run} runKey={key} explore={explore} />
                <NoteOf id={id} note={value.note} />
              </div>
              <Newest detail={value} explore={explore} />
              <Corrections all={value.corrections} />
            </div>
          </>
        )}
      </div>
    </main>
  )
}

interface HeadProps {
  readonly detail: Detail
  readonly onPriority: (priority: Template['priority']) => void
}

const seen = (at: string) => (
  <time dateTime={at} title={fullTime(Date.parse(at), zone.value)}>
    {shortTime(Date.parse(at), zone.value)}
  </time>
)

const Head = ({ detail, onPriority }: HeadProps) => (
  <header class="template-head">
    <h2>
      <TemplateText text={detail.template_text} />
    </h2>
    <div>
      <span class={`badge ${detail.severity.toLowerCase()}`}>{detail.severity}</span>
      <PriorityChoice
        chosen={detail.priority}
        isSmall
        isDisabled={!may('manager')}
        what="for its newest event and later ones"
        onChoose={onPriority}
      />
      <span class="note">
        {detail.model_version === 'manual'
          ? 'set by a person'
          : `confidence ${percent(detail.confidence)}`}
      </span>
      <span class="note">
        {detail.source}, {count(detail.occurrence_count)} in all, first {seen(detail.first_seen)},
        last {seen(detail.last_seen)}
      </span>
    </div>
  </header>
)

function Variables({ detail }: { readonly detail: Detail }) {
  if (detail.variables.length === 0) return null
  return (
    <section class="card variables">
      <h2>What varies</h2>
      {detail.variables.map(({ index, values, numbers }) => {
        const most = values[0]?.count ?? 1
        return (
          <div key={index}>
            <h3>
              {index + 1}. {before(detail.template_text, index)}
              {numbers !== null && (
                <span class="note">
                  {' '}
                  p50 {numbers.p50}
                  {numbers.unit} · p95 {numbers.p95}
                  {numbers.unit}
                </span>
              )}
            </h3>
            <ul class="ranked plain-list">
              {values.slice(0, 6).map((one) => (
                <li key={one.value}>
                  <span class="bar" style={{ width: `${(one.count / most) * 100}%` }} />
                  <code>{one.value.slice(0, 200)}</code>
                  <b>{short(one.count)}</b>
                </li>
              ))}
            </ul>
          </div>
        )
      })}
    </section>
  )
}

/** The words before a variable, which identify it for the reader. */
function before(text: string, index: number): string {
  const constant = text.split('<*>')[index]?.trim() ?? ''
  return constant === '' ? '∗' : `… ${constant.slice(-40)} ∗`
}

interface HostsProps {
  readonly run: Run
  readonly runKey: string
  readonly explore: (line: string) => string
}

function Hosts({ run, runKey, explore }: HostsProps) {
  const loaded = useLoad(`hosts ${runKey}`, (signal) =>
    call<FacetReply>(pathWith('/api/logs/facets', { ...runParams(run), fields: 'host', top: 10 }), {
      signal,
    }),
  )
  const { value } = loaded
  const values = value?.facets[0]?.values ?? []
  const most = values[0]?.count ?? 1
  return (
    <section class="card">
      <h2>Hosts</h2>
      <Problem of={loaded} />
      {value !== null && values.length === 0 && <p class="note">None in this time range.</p>}
      <ul class="ranked">
        {values.map((one) => (
          <li key={one.value}>
            <a href={explore(`${run.line} ${clauseLine('host', one.value)}`)}>
              <span class="bar" style={{ width: `${(one.count / most) * 100}%` }} />
              <span>{one.value === '' ? '(none)' : one.value}</span>
              <b>{short(one.count)}</b>
            </a>
          </li>
        ))}
      </ul>
    </section>
  )
}

interface NewestProps {
  readonly detail: Detail
  readonly explore: (line: string) => string
}

const Newest = ({ detail, explore }: NewestProps) => (
  <section class="card wide">
    <h2>Newest events</h2>
    <ol class="newest">
      {detail.sample_events.map((row) => (
        <li key={row.id}>
          <a href={`${explore(`template:${detail.template_id}`)}&id=${row.id}`}>
            <time dateTime={row.timestamp}>{fullTime(Date.parse(row.timestamp), zone.value)}</time>
            <span class="note">{row.host}</span>
            <code>
              {pieces(oneLine(row.message), detail.template_text).map(({ text, isVariable }, i) =>
                isVariable ? <i key={i}>{text}</i> : text,
              )}
            </code>
          </a>
        </li>
      ))}
    </ol>
  </section>
)
