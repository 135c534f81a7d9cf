import { Contributions } from '../insights/contributions.js'
import type { Explanation } from '../insights/insight-answers.js'
import { call } from '../lib/api.js'
import { count } from '../lib/format.js'
import { Icon } from '../lib/icon.js'
import { useKeys } from '../lib/keys.js'
import { useLoad } from '../lib/load.js'
import { setRange } from '../lib/range.js'
import { zone } from '../lib/settings.js'
import { rangeLabel } from '../lib/time.js'
import { Problem } from '../shell/problem.js'

interface WhyProps {
  readonly line: string
  /** `FROM..TO`, both ISO 8601. */
  readonly span: string
  readonly onClose: () => void
}

interface Reply extends Explanation {
  readonly total_before: number
  readonly total_during: number
}

/** The differences between a span that was selected in the histogram and the time before it. */
export function WhyPanel({ line, span, onClose }: WhyProps) {
  const [from = '', to = ''] = span.split('..')
  const loaded = useLoad(`why ${line} ${span}`, (signal) =>
    call<Reply>('/api/ai-insights/explain', {
      method: 'POST',
      json: { q: line, start_time: from, end_time: to },
      signal,
    }),
  )
  const { value, error } = loaded
  useKeys('Why this?', [{ key: 'Escape', label: 'close the explanation', run: onClose }])
  return (
    <aside class="detail why-panel" aria-label="Why this?">
      <header>
        <div class="head">
          <strong>Why this?</strong>
          <span class="note">{rangeLabel({ from, to }, zone.value, Date.now())}</span>
        </div>
        <button class="quiet square" aria-label="Close" title="Close (Esc)" onClick={onClose}>
          <Icon name="x" />
        </button>
      </header>
      <div class="tab-panel" tabIndex={0} role="region" aria-label="What explains it">
        <Problem of={loaded} />
        {value === null && error === null && <div class="found waiting" aria-busy="true" />}
        {value !== null && (
          <>
            <p>
              <b>{count(value.total_during)}</b> occurrences; in the equally long time before,{' '}
              {count(value.total_before)}.
            </p>
            <p class="line">
              <button onClick={() => setRange({ from, to })}>
                <Icon name="search" size={14} /> Zoom in
              </button>
            </p>
            <p>The change consists of:</p>
            <Contributions explanation={value} line={line} />
          </>
        )}
      </div>
    </aside>
  )
}
