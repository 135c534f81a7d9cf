import { pathWith } from '../lib/api.js'
import { Icon } from '../lib/icon.js'
import { may } from '../lib/session.js'
import { density, wrapping } from '../lib/settings.js'
import { copy } from '../shell/notice.js'
import { exportRun } from './export-run.js'
import { runParams, type ExportFormat, type Run } from './answers.js'
import { toggleWrap } from './event-list.js'
import { COLUMNS } from './event-row.js'
import { copyLink } from './copy-link.js'

interface ChoicesProps {
  readonly run: Run
  readonly close: () => void
}

const EXPORTS = [
  { format: 'ndjson', name: 'NDJSON' },
  { format: 'csv', name: 'CSV' },
  { format: 'txt', name: 'Text' },
] as const satisfies readonly { readonly format: ExportFormat; readonly name: string }[]

interface ExportProps extends ChoicesProps {
  readonly total: number | null
}

/** The export of all matching events. */
export const ExportChoices = ({ run, total, close }: ExportProps) => (
  <>
    {EXPORTS.map(({ format, name }) => (
      <button
        key={format}
        class="item"
        onClick={() => {
          close()
          void exportRun(run, format, total)
        }}
      >
        <Icon name="download" /> {name}
      </button>
    ))}
  </>
)

/** Copies the query as a link, as a command, or opens it as a rule. */
export const CopyChoices = ({ run, close }: ChoicesProps) => (
  <>
    <button class="item" onClick={() => void copyLink(run).then(close)}>
      <Icon name="link" /> Link with absolute times <kbd>L</kbd>
    </button>
    <button
      class="item"
      onClick={() => void copy(curlOf(run), 'The curl command is copied.').then(close)}
    >
      <Icon name="square-terminal" /> As curl
    </button>
    {may('manager') && (
      <a class="item" href={pathWith('/alerts/rules/new', { q: run.line })} onClick={close}>
        <Icon name="bell" /> Alert on this
      </a>
    )}
  </>
)

interface ColumnChoicesProps {
  readonly columns: readonly string[]
  readonly onColumn: (name: string) => void
}

/** How the list is drawn: density, wrapping, columns. */
export function ColumnChoices({ columns, onColumn }: ColumnChoicesProps) {
  const names = [...COLUMNS, ...columns.filter((name) => !COLUMNS.some((one) => one === name))]
  return (
    <>
      <div class="segments" role="group" aria-label="Lines">
        {(['compact', 'roomy'] as const).map((value) => (
          <button
            key={value}
            aria-pressed={density.value === value}
            onClick={() => {
              density.value = value
            }}
          >
            {value === 'compact' ? 'Compact' : 'Roomy'}
          </button>
        ))}
      </div>
      <label class="check">
        <input type="checkbox" checked={wrapping.value === 'on'} onChange={toggleWrap} /> Wrap lines
        <kbd>w</kbd>
      </label>
      <h3>Columns</h3>
      {names.map((name) => (
        <label key={name} class="check">
          <input type="checkbox" checked={columns.includes(name)} onChange={() => onColumn(name)} />
          {name}
        </label>
      ))}
    </>
  )
}

const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

/** The query as a command; the user inserts the token. */
function curlOf(run: Run): string {
  const given = Object.entries(runParams(run)).filter(([, value]) => value !== '')
  return [
    `curl -sG ${quoted(`${location.origin}/api/logs`)}`,
    '-H "Authorization: Bearer $TOKEN"',
    ...given.map(([name, value]) => `--data-urlencode ${quoted(`${name}=${value}`)}`),
  ].join(' \\\n  ')
}
