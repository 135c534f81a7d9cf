import { useState } from 'preact/hooks'

import { act } from '../lib/act.js'
import { Icon } from '../lib/icon.js'
import { usePaged } from '../lib/paged.js'
import { go, place, setParams } from '../lib/router.js'
import { may } from '../lib/session.js'
import { SilenceForm, SilenceTable, type Silence } from './silences.js'
import { WindowForm, WindowTable, type MaintenanceWindow } from './windows.js'

/**
 * Silences, which apply once, and maintenance windows, which recur each week. `?silence=` and
 * `?window` open the form of a new one.
 */
export function Quiet() {
  const silences = usePaged<Silence>('/api/silences', { limit: 100 })
  const windows = usePaged<MaintenanceWindow>('/api/maintenance-windows', { limit: 100 })
  const { params } = place.value
  const asked = params.get('silence')
  const [silence, editSilence] = useState<Silence | null>(null)
  const [window, editWindow] = useState<MaintenanceWindow | null>(null)
  const close = (): void => {
    editSilence(null)
    editWindow(null)
    setParams({ silence: null, for: null, window: null }, { replace: true })
  }
  return (
    <>
      {may('manager') && (
        <p class="line above-table">
          <button class="primary" onClick={() => go('/alerts/quiet?silence=')}>
            <Icon name="plus" size={14} /> Silence
          </button>
          <button onClick={() => go('/alerts/quiet?window=')}>
            <Icon name="plus" size={14} /> Maintenance window
          </button>
        </p>
      )}
      <section class="card flush">
        <h2>Silences</h2>
        <SilenceTable
          list={silences}
          onEdit={editSilence}
          onChange={(work, said) => void act(work, said).then(silences.reload)}
        />
      </section>
      <section class="card flush">
        <h2>Maintenance windows</h2>
        <WindowTable
          list={windows}
          onEdit={editWindow}
          onChange={(work, said) => void act(work, said).then(windows.reload)}
        />
      </section>
      {(asked !== null || silence !== null) && (
        <SilenceForm
          silence={silence}
          matchers={asked ?? ''}
          onClose={close}
          onSaved={() => {
            close()
            silences.reload()
          }}
        />
      )}
      {(params.has('window') || window !== null) && (
        <WindowForm
          window={window}
          onClose={close}
          onSaved={() => {
            close()
            windows.reload()
          }}
        />
      )}
    </>
  )
}
