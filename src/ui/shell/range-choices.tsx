import { useState } from 'preact/hooks'

import { Icon } from '../lib/icon.js'
import { QUICK_RANGES, toMs, type Range } from '../lib/time.js'

interface RangeChoicesProps {
  readonly range: Range
  readonly close: () => void
  readonly onChoose: (range: Range) => void
}

/** The usual time ranges, and a form for any other. */
export function RangeChoices({ range, close, onChoose }: RangeChoicesProps) {
  const [from, setFrom] = useState(range.from)
  const [to, setTo] = useState(range.to)
  const nowMs = Date.now()
  const start = toMs(from.trim(), nowMs)
  const end = toMs(to.trim(), nowMs)
  const problem =
    start === null || end === null
      ? 'A time is ISO 8601, or relative such as now-2h.'
      : start >= end
        ? 'The start must be before the end.'
        : ''
  const submit = (event: Event): void => {
    event.preventDefault()
    if (problem !== '') return
    onChoose({ from: from.trim(), to: to.trim() })
    close()
  }
  return (
    <div class="range-choices">
      <div>
        {QUICK_RANGES.map((quick) => (
          <button
            key={quick.from}
            class="item"
            onClick={() => {
              onChoose({ from: quick.from, to: 'now' })
              close()
            }}
          >
            {quick.label}
            {range.from === quick.from && range.to === 'now' && <Icon name="check" />}
          </button>
        ))}
      </div>
      <form onSubmit={submit}>
        <label class="field">
          From
          <input value={from} spellcheck={false} onInput={(e) => setFrom(e.currentTarget.value)} />
        </label>
        <label class="field">
          To
          <input value={to} spellcheck={false} onInput={(e) => setTo(e.currentTarget.value)} />
        </label>
        <p class="note">{problem === '' ? 'now-2h, or 2026-05-04T10:00:00Z' : problem}</p>
        <button class="primary" disabled={problem !== ''}>
          Show
        </button>
      </form>
    </div>
  )
}
