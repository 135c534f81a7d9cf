import { count, counted } from '../lib/format.js'
import { exporting } from '../shell/open-dialogs.js'

/** The progress of an export, which continues while other screens are open. */
export function ExportProgress() {
  if (exporting.value === null) return null
  const { rows, bytes, total, cancel } = exporting.value
  return (
    <div class="exporting" role="status">
      <span>
        Exporting: <b>{count(rows)}</b>
        {total === null ? ' lines' : ` of ${counted(total, 'event')}`}, {(bytes / 1e6).toFixed(1)}{' '}
        MB
      </span>
      {total !== null && <progress aria-label="Export" max={Math.max(total, 1)} value={rows} />}
      <button onClick={cancel}>Cancel</button>
    </div>
  )
}
