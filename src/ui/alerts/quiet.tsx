import { useState } from 'preact/hooks'

import { parseMatchers, printMatchers, type Matcher } from '../../query/matcher-line.js'
import { act } from '../lib/act.js'
import { call, told } from '../lib/api.js'
import { counted } from '../lib/format.js'
import { Icon } from '../lib/icon.js'
import { useLoad } from '../lib/load.js'
import { usePaged } from '../lib/paged.js'
import { place, setParams } from '../lib/router.js'
import { may } from '../lib/session.js'
import { FormDialog } from '../shell/form-dialog.js'
import { Sure } from '../shell/sure.js'
import { When } from '../shell/when.js'

interface Silence {
  readonly id: string
  readonly matchers: readonly Matcher[]
  readonly reason: string
  readonly starts_at: string
  readonly ends_at: string
  readonly state: 'pending' | 'active' | 'expired'
}

interface MaintenanceWindow {
  readonly id: string
  readonly name: string
  readonly enabled?: boolean
  readonly reason: string
  readonly matchers: readonly Matcher[]
  readonly time_zone: string
  readonly days: readonly string[]
  readonly from: string
  readonly to: string
  readonly is_open: boolean
}

const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const

/** What keeps notices back: once, and each week. */
export function Quiet() {
  const silences = usePaged<Silence>('/api/silences', { limit: 100 })
  const windows = usePaged<MaintenanceWindow>('/api/maintenance-windows', { limit: 100 })
  const asked = place.value.params.get('silence')
  const [isAdding, setAdding] = useState(false)
  const [isAddingWindow, setAddingWindow] = useState(false)
  const closeSilence = (): void => {
    setAdding(false)
    setParams({ silence: null, for: null })
  }
  const remove = (path: string, said: string, reload: () => void): void =>
    void act(call(path, { method: 'DELETE' }), said).then(reload)
  const error = silences.error ?? windows.error
  if (error !== null) return <p class="problem">{told(error)}</p>
  return (
    <>
      {may('manager') && (
        <p class="line above-table">
          <button class="primary" onClick={() => setAdding(true)}>
            <Icon name="plus" size={14} /> Silence
          </button>
          <button onClick={() => setAddingWindow(true)}>
            <Icon name="plus" size={14} /> Maintenance window
          </button>
        </p>
      )}
      <section class="card flush">
        <h2>Silences</h2>
        {silences.items?.length === 0 ? (
          <p class="note">None. Alerts fire as before under a silence; only nobody is told.</p>
        ) : (
          <div class="table-room bare">
            <table>
              <thead>
                <tr>
                  <th>Alerts with</th>
                  <th>Why</th>
                  <th>From</th>
                  <th>To</th>
                  <th>State</th>
                  <th>
                    <span class="vh">End</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {(silences.items ?? []).map((one) => (
                  <tr key={one.id}>
                    <td class="long">
                      <code>{printMatchers(one.matchers)}</code>
                    </td>
                    <td class="long">{one.reason}</td>
                    <td>
                      <When at={one.starts_at} />
                    </td>
                    <td>
                      <When at={one.ends_at} />
                    </td>
                    <td>{one.state}</td>
                    <td class="number">
                      {may('manager') && (
                        <Sure
                          label="Delete …"
                          sure="Delete it: what fires is told"
                          onSure={() =>
                            remove(`/api/silences/${one.id}`, 'It is over.', silences.reload)
                          }
                        />
                      )}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
      <section class="card flush">
        <h2>Maintenance windows</h2>
        {windows.items?.length === 0 ? (
          <p class="note">None. A window keeps notices back each week.</p>
        ) : (
          <WindowTable
            all={windows.items ?? []}
            onRemove={(id) =>
              remove(`/api/maintenance-windows/${id}`, 'It is deleted.', windows.reload)
            }
          />
        )}
      </section>
      {(isAdding || asked !== null) && (
        <SilenceForm
          matchers={asked ?? ''}
          onClose={closeSilence}
          onSaved={() => {
            closeSilence()
            silences.reload()
          }}
        />
      )}
      {isAddingWindow && (
        <WindowForm
          onClose={() => setAddingWindow(false)}
          onSaved={() => {
            setAddingWindow(false)
            windows.reload()
          }}
        />
      )}
    </>
  )
}

interface WindowTableProps {
  readonly all: readonly MaintenanceWindow[]
  readonly onRemove: (id: string) => void
}

const WindowTable = ({ all, onRemove }: WindowTableProps) => (
  <div class="table-room bare">
    <table>
      <thead>
        <tr>
          <th>Name</th>
          <th>Alerts with</th>
          <th>On</th>
          <th>From</th>
          <th>Zone</th>
          <th>Now</th>
          <th>
            <span class="vh">Delete</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {all.map((one) => (
          <tr key={one.id}>
            <td title={one.reason}>{one.name}</td>
            <td class="long">
              <code>{printMatchers(one.matchers)}</code>
            </td>
            <td class="days">{one.days.join(', ')}</td>
            <td>
              {one.from} to {one.to}
            </td>
            <td>{one.time_zone}</td>
            <td>{one.is_open ? <span class="state pending">keeps back</span> : 'closed'}</td>
            <td class="number">
              {may('manager') && (
                <Sure label="Delete …" sure="Delete the window" onSure={() => onRemove(one.id)} />
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)

interface FormProps {
  readonly onClose: () => void
  readonly onSaved: () => void
}

/** How long a silence may last. */
const ENDS = [
  ['now+1h', 'an hour'],
  ['now+2h', 'two hours'],
  ['now+8h', 'eight hours'],
  ['now+1d', 'a day'],
  ['now+7d', 'a week'],
] as const

const HOW_TO =
  'field=value or field!=value, with commas between; * stands for any characters, but not in "quotes"'

function SilenceForm({
  matchers: given,
  onClose,
  onSaved,
}: FormProps & { readonly matchers: string }) {
  const [text, setText] = useState(given)
  const matchers = parseMatchers(text)
  const ends = place.value.params.get('for') ?? 'now+2h'
  const submit = (field: (name: string) => string): Promise<unknown> => {
    const json = { matchers, reason: field('reason'), ends_at: field('ends') }
    return call('/api/silences', { method: 'POST', json }).then(onSaved)
  }
  return (
    <FormDialog
      title="Silence"
      action="Silence them"
      isReady={matchers !== null}
      onClose={onClose}
      onSubmit={submit}
    >
      <label class="field">
        Alerts with
        <input
          class="mono"
          value={text}
          required
          autofocus
          spellcheck={false}
          placeholder="such as source=checkout"
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
      </label>
      <p class="note">{HOW_TO}</p>
      {matchers !== null && <Preview matchers={matchers} />}
      <label class="field">
        For
        <select name="ends">
          {ENDS.map(([value, name]) => (
            <option key={value} value={value} selected={value === ends}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        Why (required)
        <input name="reason" required maxLength={500} />
      </label>
    </FormDialog>
  )
}

interface PreviewReply {
  readonly firing: number
  readonly last_day: number
}

/** What a silence would keep back. */
function Preview({ matchers }: { readonly matchers: readonly Matcher[] }) {
  const { value } = useLoad(`silence ${JSON.stringify(matchers)}`, (signal) =>
    call<PreviewReply>('/api/silences/preview', { method: 'POST', json: { matchers }, signal }),
  )
  return (
    <p role="status">
      {value === null
        ? ' '
        : `Means ${counted(value.firing, 'alert')} that ${value.firing === 1 ? 'fires' : 'fire'} now, and ${value.last_day} of the last 24 hours.`}
    </p>
  )
}

function WindowForm({ onClose, onSaved }: FormProps) {
  const submit = (field: (name: string) => string): string | Promise<unknown> => {
    const matchers = parseMatchers(field('matchers'))
    if (matchers === null) return HOW_TO
    const json = {
      name: field('name'),
      reason: field('reason'),
      matchers,
      time_zone: field('zone'),
      days: DAYS.filter((day) => field(day) !== ''),
      from: field('from'),
      to: field('to'),
    }
    return call('/api/maintenance-windows', { method: 'POST', json }).then(onSaved)
  }
  return (
    <FormDialog title="Maintenance window" action="Save" onClose={onClose} onSubmit={submit}>
      <label class="field">
        Name
        <input name="name" required maxLength={120} autofocus />
      </label>
      <label class="field">
        Alerts with
        <input name="matchers" class="mono" required spellcheck={false} defaultValue="source=*" />
      </label>
      <p class="note">{HOW_TO}</p>
      <fieldset class="channels">
        <legend class="note">Begins on</legend>
        {DAYS.map((day) => (
          <label key={day}>
            <input type="checkbox" name={day} defaultChecked={day === 'sun'} />{' '}
            <span class="days">{day}</span>
          </label>
        ))}
      </fieldset>
      <div class="pair">
        <label class="field">
          From
          <input name="from" type="time" required defaultValue="02:00" />
        </label>
        <label class="field">
          To
          <input name="to" type="time" required defaultValue="04:00" />
        </label>
        <label class="field">
          Zone
          <input
            name="zone"
            required
            defaultValue={Intl.DateTimeFormat().resolvedOptions().timeZone}
          />
        </label>
      </div>
      <label class="field">
        Why (required)
        <input name="reason" required maxLength={500} />
      </label>
    </FormDialog>
  )
}
