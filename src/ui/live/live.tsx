import { useEffect, useRef, useState } from 'preact/hooks'

import { useCorrection } from '../explore/correction.js'
import { DEFAULT_COLUMNS } from '../explore/event-row.js'
import { QueryBar } from '../explore/query-bar.js'
import { toggleWrap } from '../explore/event-list.js'
import { count, counted, perSecond } from '../lib/format.js'
import { Icon } from '../lib/icon.js'
import { useKeys } from '../lib/keys.js'
import { lazy } from '../lib/lazy.js'
import { addressOf, go, place, setParams } from '../lib/router.js'
import type { SocketState } from '../lib/socket.js'
import { TopBar } from '../shell/top-bar.js'
import type { Tab } from '../explore/detail.js'
import { TailList } from './tail-list.js'
import { TemplateLines } from './template-lines.js'
import { useTail, type Tail } from './use-tail.js'

const DetailPanel = lazy(async () => (await import('../later.js')).DetailPanel)

const HOUR_MS = 3_600_000

/** The screen Live: events as they arrive. It follows until the user scrolls, selects, opens an event or presses Space. */
export function Live() {
  const { params } = place.value
  const line = params.get('q') ?? ''
  const marks = params.get('mark') ?? ''
  const isByTemplate = params.get('mode') === 'templates'
  const id = Number(params.get('id') ?? 0) || null
  const columns = params.get('cols')?.split(',') ?? [...DEFAULT_COLUMNS]
  const tail = useTail(line)
  const { buffer, redraw } = tail
  const [tab, setTab] = useState<Tab>('fields')
  const query = useRef<HTMLTextAreaElement | null>(null)
  const correction = useCorrection()
  useEffect(() => {
    document.title = line === '' ? 'Live' : `${line} · Live`
  }, [line])

  const pause = (): void => {
    if (buffer.isPaused) return
    buffer.pause()
    redraw()
  }
  const resume = (): void => {
    if (id !== null) setParams({ id: null }, { replace: true })
    buffer.resume()
    redraw()
  }
  const toggle = (): void => (buffer.isPaused ? resume() : pause())
  useKeys('Live', [
    { key: ' ', label: 'pause or go on', run: toggle },
    { key: '/', label: 'write a query', run: () => query.current?.focus() },
    { key: 'w', label: 'wrap lines', run: toggleWrap },
    { key: 't', label: 'lines or templates', run: () => setMode(!isByTemplate) },
  ])
  const open = (event: number): void => {
    pause()
    setParams({ id: String(event) }, { replace: true })
  }
  const nowMs = Date.now()
  return (
    <main class="screen live">
      <TopBar title="Live">
        <Controls tail={tail} onToggle={toggle} />
      </TopBar>
      <div class="ask">
        <QueryBar
          line={line}
          span={{ fromMs: nowMs - HOUR_MS, toMs: nowMs }}
          fault={tail.fault}
          onRun={(next) => go(addressOf('/live', params, { q: next, id: null }))}
          handle={query}
        />
        <Line tail={tail} marks={marks} isByTemplate={isByTemplate} line={line} />
      </div>
      <div class={`body ${id === null ? '' : 'with-detail'}`}>
        {buffer.items.length === 0 ? (
          <div class="found empty">
            <Icon name="activity" size={22} />
            <h2>Waiting for events</h2>
            <p>New events appear here. Earlier ones are in Explore.</p>
          </div>
        ) : isByTemplate ? (
          <TemplateLines items={buffer.items} matched={buffer.matched} />
        ) : (
          <TailList
            buffer={buffer}
            columns={columns}
            marks={wordsOf(marks)}
            openId={id}
            onOpen={open}
            onPause={pause}
            onResume={resume}
          />
        )}
        {id !== null && (
          <DetailPanel
            id={id}
            line={line}
            tab={tab}
            revision={correction.revision}
            onTab={setTab}
            onLine={(next) => go(addressOf('/live', params, { q: next }))}
            onClose={() => setParams({ id: null }, { replace: true })}
            onOpen={open}
            onCorrect={correction.correct}
          />
        )}
      </div>
    </main>
  )
}

const setMode = (isByTemplate: boolean): void =>
  setParams({ mode: isByTemplate ? 'templates' : null }, { replace: true })

const wordsOf = (marks: string): readonly string[] =>
  marks.split(/\s+/).filter((word) => word !== '')

interface ControlsProps {
  readonly tail: Tail
  readonly onToggle: () => void
}

const STATES: Readonly<Record<SocketState, string>> = {
  open: 'Live',
  lost: 'Connecting …',
  hidden: 'Hidden',
}

function Controls({ tail: { buffer, state }, onToggle }: ControlsProps) {
  const { isPaused, waiting } = buffer
  return (
    <>
      <button class={isPaused ? 'primary' : ''} onClick={onToggle} title="Space">
        <Icon name={isPaused ? 'play' : 'pause'} size={14} />
        {isPaused ? 'Go on' : 'Pause'}
      </button>
      <span class={`pulse ${isPaused ? 'paused' : state}`} role="status">
        {isPaused ? `Paused · ${count(waiting)} new` : STATES[state]}
      </span>
    </>
  )
}

interface LineProps {
  readonly tail: Tail
  readonly marks: string
  readonly isByTemplate: boolean
  readonly line: string
}

/** The numbers of events received and left out, and the choice of the view. */
function Line({ tail: { buffer }, marks, isByTemplate, line }: LineProps) {
  const rate = buffer.ratePerSecond(Date.now())
  return (
    <div class="summary-line">
      <p class="totals">
        <strong>{perSecond(rate)}</strong> /s
        <span>{counted(buffer.matched, 'event')}</span>
        {buffer.leftOut > 0 && (
          <span>
            {count(buffer.leftOut)} left out,{' '}
            <a
              href={addressOf(
                '/explore',
                new URLSearchParams({ q: line, from: 'now-15m', to: 'now' }),
              )}
            >
              all in Explore
            </a>
          </span>
        )}
      </p>
      <label class="mark-words">
        <span class="wide-only">Highlight</span>
        <input
          value={marks}
          placeholder="words"
          aria-label="Words to highlight"
          spellcheck={false}
          onInput={({ currentTarget }) =>
            setParams({ mark: currentTarget.value }, { replace: true })
          }
        />
      </label>
      <div class="segments" role="group" aria-label="Shown as">
        <button aria-pressed={!isByTemplate} onClick={() => setMode(false)}>
          Lines
        </button>
        <button aria-pressed={isByTemplate} onClick={() => setMode(true)}>
          Templates
        </button>
      </div>
      <button
        class="quiet square"
        aria-label="Wrap lines"
        title="Wrap lines (w)"
        onClick={toggleWrap}
      >
        <Icon name="text-wrap" />
      </button>
    </div>
  )
}
