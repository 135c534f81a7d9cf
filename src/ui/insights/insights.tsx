import { useEffect, useState } from 'preact/hooks'

import { act } from '../lib/act.js'
import { ApiError, call, pathWith } from '../lib/api.js'
import { percent, short } from '../lib/format.js'
import { Icon } from '../lib/icon.js'
import { useLoad } from '../lib/load.js'
import { place, setParams } from '../lib/router.js'
import { may } from '../lib/session.js'
import { zone } from '../lib/settings.js'
import { TemplateText } from '../lib/template-text.js'
import { shortTime, toMs } from '../lib/time.js'
import { TopBar } from '../shell/top-bar.js'
import { When } from '../shell/when.js'
import { AnomalyPanel } from './anomaly.js'
import { AnomalyTimeline } from './anomaly-timeline.js'
import { ForecastChart } from './forecast.js'
import { isLearning, NOT_ANALYSED, type Snapshot, type TemplateChange } from './insight-answers.js'
import { Problem } from '../shell/problem.js'

const HOUR_MS = 3_600_000

/** The screen Insights: the results of the analysis of hourly counts; with `?at=` those of an earlier time. */
export function Insights() {
  const { params } = place.value
  const at = params.get('at') ?? ''
  const id = params.get('id')
  const [asked, setAsked] = useState(0)
  const ms = at === '' ? null : toMs(at, Date.now())
  const iso = ms === null ? null : new Date(ms).toISOString()
  const loaded = useLoad(`insights ${at} ${asked}`, (signal) =>
    call<Snapshot>(pathWith('/api/ai-insights/snapshot', { at: iso }), { signal }),
  )
  const { value, error } = loaded
  useEffect(() => {
    document.title = 'Insights'
  }, [])
  const isMissing = error instanceof ApiError && error.status === 404
  const compute = (): void =>
    void act(
      call(pathWith('/api/ai-insights/snapshot/refresh', { at: iso }), { method: 'POST' }),
      'The analysis was updated.',
    ).then(() => setAsked((n) => n + 1))
  return (
    <main class="screen insights">
      <TopBar title="Insights">
        <AtChoice ms={ms} />
        {may('manager') && (
          <button class="quiet" onClick={compute} title="Analyse now">
            <Icon name="refresh-cw" size={14} /> <span class="wide-only">Analyse now</span>
          </button>
        )}
      </TopBar>
      <div class={`body ${id === null ? '' : 'with-detail'}`}>
        <div class="scroll">
          {isMissing && (
            <div class="nothing">
              <Icon name="trending-up" size={22} />
              <h2>No analysis of this time yet</h2>
              <p>One is made every few minutes, once there are events.</p>
            </div>
          )}
          {!isMissing && <Problem of={loaded} />}
          {value === null && error === null && <div class="card waiting" aria-busy="true" />}
          {value !== null && <Parts snapshot={value} openId={id} />}
        </div>
        {id !== null && <AnomalyPanel id={id} onClose={() => setParams({ id: null })} />}
      </div>
    </main>
  )
}

interface AtChoiceProps {
  readonly ms: number | null
}

/** Chooses an earlier time of the analysis. */
function AtChoice({ ms }: AtChoiceProps) {
  const move = (hours: number): void => {
    const next = (ms ?? Date.now()) + hours * HOUR_MS
    setParams({ at: next >= Date.now() ? null : new Date(next).toISOString().slice(0, 16) + 'Z' })
  }
  return (
    <div class="time-range">
      <button
        class="quiet square"
        aria-label="A day earlier"
        title="A day earlier"
        onClick={() => move(-24)}
      >
        <Icon name="chevron-left" />
      </button>
      <span class="at">{ms === null ? 'Now' : shortTime(ms, zone.value)}</span>
      <button
        class="quiet square"
        aria-label="A day later"
        title="A day later"
        disabled={ms === null}
        onClick={() => move(24)}
      >
        <Icon name="chevron-right" />
      </button>
      {ms !== null && (
        <button class="quiet" onClick={() => setParams({ at: null })}>
          Now
        </button>
      )}
    </div>
  )
}

interface PartsProps {
  readonly snapshot: Snapshot
  readonly openId: string | null
}

const Parts = ({ snapshot, openId }: PartsProps) => (
  <>
    <p class="note insight-facts">
      {snapshot.series} series up to <When at={snapshot.as_of} />. Anomalies:{' '}
      {snapshot.anomaly_counts.ongoing} ongoing, {snapshot.anomaly_counts.over} over. Health of the
      model: {percent(snapshot.health.score)}
    </p>
    <div class="panels two">
      <Learning snapshot={snapshot} />
      <section class="card wide">
        <h2>Anomalies of five days</h2>
        <AnomalyTimeline snapshot={snapshot} openId={openId} />
      </section>
      <section class="card wide">
        <h2>The next 24 hours</h2>
        <ForecastChart forecast={snapshot.forecast.events} title="Events an hour" />
        <ForecastChart forecast={snapshot.forecast.errors} title="Errors an hour" isError />
        {snapshot.forecast.events.hours.length > 0 && (
          <p class="note">
            The band holds {percent(snapshot.forecast.level)} of what is expected
            {snapshot.forecast.events.coverage !== null &&
              `; of the hours before it held ${percent(snapshot.forecast.events.coverage)}`}
            .
          </p>
        )}
      </section>
      <section class="card wide">
        <h2>Changed templates</h2>
        {snapshot.emerging_templates.length === 0 && (
          <p class="note">
            {isLearning(snapshot, 'new_templates')
              ? NOT_ANALYSED
              : 'None is new, has come back, grown or vanished.'}
          </p>
        )}
        <ul class="changes">
          {snapshot.emerging_templates.map((one) => (
            <Change key={one.template_id} one={one} />
          ))}
        </ul>
      </section>
    </div>
  </>
)

const Change = ({ one }: { readonly one: TemplateChange }) => (
  <li>
    <a href={`/templates/${one.template_id}?from=now-7d&to=now`}>
      <em class={one.change}>{one.change}</em>
      <span class="text">
        {one.template_text === null ? one.template_id : <TemplateText text={one.template_text} />}
      </span>
      <span class="note">{one.source}</span>
      <span class="amount">
        <b>{short(one.count_24h)}</b> in 24 h, usual {short(Math.round(one.expected_24h))}
      </span>
    </a>
  </li>
)

interface Finds {
  readonly name: string
  readonly what: string
}

const FINDS: Readonly<Record<string, Finds>> = {
  anomalies: {
    name: 'Anomalies',
    what: 'Hours with far more or fewer events than this hour usually has, and silence.',
  },
  anomalies_of_weekends: {
    name: 'Anomalies of weekends',
    what: 'The same on days on which less happens.',
  },
  new_templates: { name: 'New templates', what: 'Kinds of messages that never came before.' },
  grown_templates: {
    name: 'Grown and vanished templates',
    what: 'Kinds of messages that come far more often than in the week before, or no longer.',
  },
  forecast: {
    name: 'Forecast',
    what: 'Events and errors of the next 24 hours, with a band of what is expected.',
  },
}

/** What cannot be found yet, because the history is too short. */
function Learning({ snapshot }: { readonly snapshot: Snapshot }) {
  if (snapshot.learning.length === 0) return null
  return (
    <section class="card wide learning">
      <h2>Still learning</h2>
      {snapshot.learning.every(({ from }) => from === null) ? (
        <p class="note">No events are analysed yet.</p>
      ) : (
        <dl>
          {snapshot.learning.map(({ finds, from }) => (
            <div key={finds}>
              <dt>{FINDS[finds]?.name ?? finds}</dt>
              <dd>{FINDS[finds]?.what}</dd>
              <dd class="from">
                {from === null ? (
                  'once the first events are analysed'
                ) : (
                  <>
                    from <When at={from} />
                  </>
                )}
              </dd>
            </div>
          ))}
        </dl>
      )}
    </section>
  )
}
