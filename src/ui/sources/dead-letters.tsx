import { useLayoutEffect, useState } from 'preact/hooks'

import { call, pathWith, messageOf } from '../lib/api.js'
import { count, counted } from '../lib/format.js'
import { Icon } from '../lib/icon.js'
import { useLoad } from '../lib/load.js'
import { zone } from '../lib/settings.js'
import { takeFocus } from '../lib/take-focus.js'
import { fullTime } from '../lib/time.js'
import { notice } from '../shell/notice.js'
import { Problem } from '../shell/problem.js'

interface Letter {
  readonly id: number
  readonly received_at: string
  readonly source: string
  readonly reason: string
  readonly detail: string
  readonly raw: string | null
}

interface LetterPage {
  readonly items: readonly Letter[]
  readonly next_cursor: string | null
}

interface ReplayReply {
  readonly replayed: number
  readonly failed: number
  readonly skipped: number
}

/** The reasons of dead letters, in words. */
const REASONS: Readonly<Record<string, string>> = {
  invalid_json: 'Not JSON',
  invalid_event: 'A field has a wrong form',
  missing_message: 'No message',
  invalid_timestamp: 'A time that can’t be read',
  timestamp_out_of_range: 'A time too far away',
  message_too_large: 'Too large',
  unknown_source: 'An unknown source',
  source_limit: 'Too many sources',
  key_source_limit: 'Too many sources of one key',
  store_refused: 'Refused by ClickHouse',
}

const MOST = 200
const MOST_NAMES = 4
/** The most characters of a record that are shown; the edit form has all. */
const MOST_SHOWN = 4000

const nameOf = ({ source }: Letter): string => (source === '' ? '(no source)' : source)

function sourcesOf(letters: readonly Letter[]): string {
  const names = [...new Set(letters.map(nameOf))]
  const rest = names.length - MOST_NAMES
  return names.slice(0, MOST_NAMES).join(', ') + (rest > 0 ? ` and ${rest} more` : '')
}

/** The dead letters by reason, and their replay. */
export function DeadLetters() {
  const [revision, setRevision] = useState(0)
  const loaded = useLoad(`letters ${revision}`, (signal) =>
    call<LetterPage>(pathWith('/api/monitoring/dead-letters', { limit: MOST }), { signal }),
  )
  const { value } = loaded
  // The dead letter with the focus may have been removed.
  useLayoutEffect(() => {
    if (revision > 0 && document.activeElement === document.body)
      takeFocus(document.querySelector('.letters button'))
  }, [value])
  if (loaded.error !== null) return <Problem of={loaded} />
  if (value === null) return null
  if (value.items.length === 0)
    return (
      <div class="nothing">
        <Icon name="inbox" size={22} />
        <h2>No dead letters</h2>
        <p>Every message that came in is stored.</p>
      </div>
    )
  const groups = new Map<string, Letter[]>()
  for (const letter of value.items)
    groups.set(letter.reason, [...(groups.get(letter.reason) ?? []), letter])
  const replay = (body: object): void => {
    call<ReplayReply>('/api/monitoring/dead-letters/replay', { method: 'POST', json: body }).then(
      ({ replayed, failed, skipped }) => {
        const why = 'They are truncated or no JSON object, or their source does not accept them'
        const left = skipped === 0 ? '' : ` Skipped: ${skipped}. ${why}.`
        notice(
          `${replayed} stored, ${failed} refused again.${left}`,
          failed + skipped > 0 ? 'problem' : 'done',
        )
        setRevision((n) => n + 1)
      },
      (problem: unknown) => notice(messageOf(problem), 'problem'),
    )
  }
  return (
    <>
      {value.next_cursor !== null && <p class="note">The newest {MOST} are shown.</p>}
      {[...groups].map(([reason, letters]) => (
        <Group key={reason} reason={reason} letters={letters} onReplay={replay} />
      ))}
    </>
  )
}

interface GroupProps {
  readonly reason: string
  readonly letters: readonly Letter[]
  readonly onReplay: (body: object) => void
}

const Group = ({ reason, letters, onReplay }: GroupProps) => (
  <section class="card letters">
    <header>
      <h2>{REASONS[reason] ?? reason}</h2>
      <span class="note">
        {counted(letters.length, 'message')} of {sourcesOf(letters)}
      </span>
      <button onClick={() => onReplay({ reason: [reason] })} title="Replay them unchanged">
        <Icon name="undo-2" size={14} /> Replay all
      </button>
    </header>
    <ul>
      {letters.map((letter) => (
        <LetterItem
          key={letter.id}
          letter={letter}
          onReplay={(raw) =>
            onReplay(raw === null ? { ids: [letter.id] } : { edits: [{ id: letter.id, raw }] })
          }
        />
      ))}
    </ul>
  </section>
)

interface LetterItemProps {
  readonly letter: Letter
  readonly onReplay: (raw: string | null) => void
}

function LetterItem({ letter, onReplay }: LetterItemProps) {
  const { raw } = letter
  const [edited, setEdited] = useState<string | null>(null)
  return (
    <li>
      <p>
        <strong>{nameOf(letter)}</strong>
        <span>
          {letter.detail
            .split('`')
            .map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : part))}
        </span>
        <time dateTime={letter.received_at}>
          {fullTime(Date.parse(letter.received_at), zone.value)}
        </time>
      </p>
      <div class="raw">
        {edited === null ? (
          <pre tabIndex={0} aria-label="Record">
            {raw === null
              ? 'The record was not kept: it came from an uploaded file.'
              : raw.length > MOST_SHOWN
                ? `${raw.slice(0, MOST_SHOWN)}… (${count(raw.length)} characters in all)`
                : raw}
          </pre>
        ) : (
          <textarea
            ref={takeFocus}
            class="mono"
            rows={Math.min(12, Math.ceil(edited.length / 90) + 1)}
            aria-label="The record"
            spellcheck={false}
            value={edited}
            onInput={({ currentTarget }) => setEdited(currentTarget.value)}
          />
        )}
        {raw !== null && (
          <>
            {edited === null ? (
              <button class="quiet" onClick={() => setEdited(raw)} title="Edit it, then replay it">
                Edit
              </button>
            ) : (
              <button class="quiet" onClick={() => setEdited(null)}>
                Cancel
              </button>
            )}
            <button class="quiet" onClick={() => onReplay(edited)} title="Replay it">
              <Icon name="undo-2" size={14} /> Replay
            </button>
          </>
        )}
      </div>
    </li>
  )
}
