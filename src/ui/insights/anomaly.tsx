import { call, pathWith } from '../lib/api.js'
import { count, short } from '../lib/format.js'
import { Icon } from '../lib/icon.js'
import { useKeys } from '../lib/keys.js'
import { useLoad } from '../lib/load.js'
import { may } from '../lib/session.js'
import { draft } from '../shell/open-dialogs.js'
import { When } from '../shell/when.js'
import { Contributions } from './contributions.js'
import { lineOf, subjectOf, type Anomaly, type Explanation } from './insight-answers.js'
import { Problem } from '../shell/problem.js'

interface AnomalyPanelProps {
  readonly id: string
  readonly onClose: () => void
}

type Reply = Explanation & { readonly anomaly: Anomaly }

/** An anomaly and its explanation. */
export function AnomalyPanel({ id, onClose }: AnomalyPanelProps) {
  const loaded = useLoad(`anomaly ${id}`, (signal) =>
    call<Reply>(`/api/ai-insights/anomalies/${id}`, { signal }),
  )
  const { value } = loaded
  useKeys('Anomaly', [{ key: 'Escape', label: 'close the anomaly', run: onClose }])
  return (
    <aside class="detail" aria-label="Anomaly">
      <header>
        <div class="head">
          {value !== null && <em class={`kind ${value.anomaly.kind}`}>{value.anomaly.kind}</em>}
          <strong>{value === null ? ' ' : subjectOf(value.anomaly)}</strong>
        </div>
        <button class="quiet square" aria-label="Close" title="Close (Esc)" onClick={onClose}>
          <Icon name="x" />
        </button>
      </header>
      <div class="tab-panel" tabIndex={0} role="region" aria-label="What explains it">
        <Problem of={loaded} what="anomaly" />
        {value !== null && <Facts reply={value} />}
      </div>
    </aside>
  )
}

function Facts({ reply }: { readonly reply: Reply }) {
  const { anomaly, from, to } = reply
  const [low, high] = anomaly.expected_range
  const line = lineOf(anomaly)
  return (
    <>
      <p>
        <b>{count(anomaly.observed)}</b> in place of {short(Math.round(anomaly.expected))}, which
        would be between {short(low)} and {short(high)}; {anomaly.score.toFixed(1)} standard
        deviations.
      </p>
      <p class="note">
        from <When at={anomaly.started_at} />
        {anomaly.ended_at === null ? ', goes on' : ' to '}
        {anomaly.ended_at !== null && <When at={anomaly.ended_at} />}
      </p>
      <p class="line">
        <a class="button" href={pathWith('/explore', { q: line, from, to })}>
          <Icon name="search" size={14} /> Its events
        </a>
        {may('manager') && (
          <button
            onClick={() => {
              draft.value = {
                title: `${anomaly.kind} of ${subjectOf(anomaly)}`.slice(0, 300),
                severity: 'P2',
                source: anomaly.source,
                event_ids: [],
                evidence: [{ q: line, from, to, count: Math.round(anomaly.observed) }],
              }
            }}
          >
            <Icon name="flame" size={14} /> Incident
          </button>
        )}
      </p>
      <Contributions explanation={reply} line={line} />
      {reply.templates.length + reply.sources.length + reply.hosts.length === 0 && (
        <p class="note">Nothing stands out: the change is spread over everything.</p>
      )}
    </>
  )
}
