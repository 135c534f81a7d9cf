import { parseMatchers, printMatchers, type Matcher } from '../../query/matcher-line.js'
import { Named } from '../explore/named.js'
import { call } from '../lib/api.js'
import type { Paged } from '../lib/paged.js'
import { may } from '../lib/session.js'
import { FormDialog } from '../shell/form-dialog.js'
import { MoreButton } from '../shell/more-button.js'
import { Problem } from '../shell/problem.js'
import { ConfirmButton } from '../shell/confirm-button.js'
import { HOW_TO } from './silences.js'

export interface MaintenanceWindow {
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
const PATH = '/api/maintenance-windows'

interface WindowTableProps {
  readonly list: Paged<MaintenanceWindow>
  readonly onEdit: (window: MaintenanceWindow) => void
  readonly onChange: (work: Promise<unknown>, said: string) => void
}

/** The maintenance windows. */
export function WindowTable({ list, onEdit, onChange }: WindowTableProps) {
  if (list.error !== null) return <Problem of={list} />
  if (list.items === null) return null
  if (list.items.length === 0)
    return <p class="note">None. A window holds notices back each week.</p>
  return (
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
              <span class="vh">Change, delete</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {list.items.map((one) => (
            <tr key={one.id}>
              <td class="long" title={`${one.name}: ${one.reason}`}>
                {one.name}
              </td>
              <td class="long">
                <code>
                  <Named text={printMatchers(one.matchers)} />
                </code>
              </td>
              <td class="days">{one.days.join(', ')}</td>
              <td>
                {one.from} to {one.to}
              </td>
              <td>{one.time_zone}</td>
              <td>
                <WindowState window={one} />
              </td>
              <td class="number">
                {may('manager') && (
                  <>
                    <button class="quiet" onClick={() => onEdit(one)}>
                      Change
                    </button>
                    <ConfirmButton
                      label="Delete …"
                      sure="Delete the window"
                      onSure={() =>
                        onChange(call(`${PATH}/${one.id}`, { method: 'DELETE' }), 'It is deleted.')
                      }
                    />
                  </>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <MoreButton list={list} />
    </div>
  )
}

function WindowState({ window }: { readonly window: MaintenanceWindow }) {
  if (window.enabled === false) return <span class="note">off</span>
  return window.is_open ? <span class="state pending">keeps back</span> : <>closed</>
}

interface WindowFormProps {
  /** Null for a new one. */
  readonly window: MaintenanceWindow | null
  readonly onClose: () => void
  readonly onSaved: () => void
}

const FRESH = {
  name: '',
  reason: '',
  matchers: [{ field: 'source', value: '*' }],
  days: ['sun'],
  from: '02:00',
  to: '04:00',
  enabled: true,
} as const

export function WindowForm({ window, onClose, onSaved }: WindowFormProps) {
  const given = window ?? {
    ...FRESH,
    time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  }
  const submit = (field: (name: string) => string): string | Promise<unknown> => {
    const matchers = parseMatchers(field('matchers'))
    if (matchers === null) return HOW_TO
    const days = DAYS.filter((day) => field(day) !== '')
    if (days.length === 0) return 'It has to begin on at least one day.'
    const json = {
      name: field('name'),
      enabled: field('enabled') !== '',
      reason: field('reason'),
      matchers,
      time_zone: field('zone'),
      days,
      from: field('from'),
      to: field('to'),
    }
    const path = window === null ? PATH : `${PATH}/${window.id}`
    return call(path, { method: window === null ? 'POST' : 'PUT', json }).then(onSaved)
  }
  return (
    <FormDialog
      title={window === null ? 'Maintenance window' : `Change ${window.name}`}
      action="Save"
      onClose={onClose}
      onSubmit={submit}
    >
      <label class="field">
        Name
        <input name="name" required maxLength={120} autofocus defaultValue={given.name} />
      </label>
      <label class="field">
        Alerts with
        <input
          name="matchers"
          class="mono"
          required
          spellcheck={false}
          defaultValue={printMatchers(given.matchers)}
        />
      </label>
      <p class="note">{HOW_TO}</p>
      <fieldset class="channels">
        <legend class="note">Begins on</legend>
        {DAYS.map((day) => (
          <label key={day}>
            <input
              type="checkbox"
              name={day}
              defaultChecked={given.days.some((on) => on === day)}
            />{' '}
            <span class="days">{day}</span>
          </label>
        ))}
      </fieldset>
      <div class="pair">
        <label class="field">
          From
          <input name="from" type="time" required defaultValue={given.from} />
        </label>
        <label class="field">
          To
          <input name="to" type="time" required defaultValue={given.to} />
        </label>
        <label class="field">
          Zone
          <input name="zone" required defaultValue={given.time_zone} />
        </label>
      </div>
      <label class="field">
        Why (required)
        <input name="reason" required maxLength={500} defaultValue={given.reason} />
      </label>
      <label>
        <input type="checkbox" name="enabled" defaultChecked={given.enabled !== false} /> It is in
        use
      </label>
    </FormDialog>
  )
}
