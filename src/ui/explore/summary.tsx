import { count, counted } from '../lib/format.js'
import { Icon } from '../lib/icon.js'
import type { Loaded } from '../lib/load.js'
import { setParams } from '../lib/router.js'
import { density, wrapping } from '../lib/settings.js'
import { copy } from '../shell/notice.js'
import { Menu } from '../shell/menu.js'
import { exportPath, runParams, type ExportFormat, type Histogram, type Run } from './answers.js'
import { FieldsToggle } from './fields-toggle.js'
import { COLUMNS } from './event-row.js'
import { toggleWrap } from './event-list.js'
import { copyLink } from './found.js'
import { colorsOf, orderOf, partName } from './stack.js'

const BY = ['severity', 'priority', 'source', 'host', 'environment', 'template'] as const

interface SummaryProps {
  readonly run: Run
  readonly columns: readonly string[]
  readonly histogram: Loaded<Histogram>
  readonly by: string
  readonly onColumn: (name: string) => void
}

/** What was found in numbers, and what can be done with it. */
export function Summary({ run, columns, histogram, by, onColumn }: SummaryProps) {
  const { value, tookMs } = histogram
  return (
    <div class="summary-line">
      <FieldsToggle />
      <p class="totals" role="status">
        {value !== null && (
          <>
            <strong>{count(value.total)}</strong> occurrences
            <span>{counted(value.unique_events, 'event')}</span>
            <span class="wide-only">{tookMs} ms</span>
            <span class="wide-only">
              from {value.answered_from === 'rollup' ? 'rollups' : 'events'}
            </span>
          </>
        )}
      </p>
      {value !== null && <Legend histogram={value} />}
      <label class="by wide-only">
        by
        <select
          value={by}
          onChange={({ currentTarget }) =>
            setParams(
              { by: currentTarget.value === 'severity' ? null : currentTarget.value },
              { replace: true },
            )
          }
        >
          {[...BY, ...(isPlainBy(by) ? [] : [by])].map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <ViewMenu columns={columns} onColumn={onColumn} />
      <Menu label="Export all events" class="quiet square" face={<Icon name="download" />}>
        {(close) =>
          EXPORTS.map(({ format, name }) => (
            <a key={format} class="item" href={exportPath(run, format)} download onClick={close}>
              <Icon name="download" /> {name}
            </a>
          ))
        }
      </Menu>
      <Menu label="Copy" class="quiet square" face={<Icon name="link" />}>
        {(close) => (
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
          </>
        )}
      </Menu>
    </div>
  )
}

const EXPORTS = [
  { format: 'ndjson', name: 'NDJSON' },
  { format: 'csv', name: 'CSV' },
  { format: 'txt', name: 'Text' },
] as const satisfies readonly { readonly format: ExportFormat; readonly name: string }[]

const isPlainBy = (by: string): boolean => BY.some((name) => name === by)

function Legend({ histogram }: { readonly histogram: Histogram }) {
  const colors = colorsOf(histogram)
  return (
    <ul class="legend wide-only">
      {orderOf(histogram)
        .toReversed()
        .slice(0, 6)
        .map((name) => (
          <li key={name}>
            <i style={{ background: colors.get(name) ?? '' }} />
            {partName(name)}
          </li>
        ))}
    </ul>
  )
}

interface ViewMenuProps {
  readonly columns: readonly string[]
  readonly onColumn: (name: string) => void
}

function ViewMenu({ columns, onColumn }: ViewMenuProps) {
  const names = [...COLUMNS, ...columns.filter((name) => !COLUMNS.some((one) => one === name))]
  return (
    <Menu label="Columns and lines" class="quiet square" face={<Icon name="columns-3" />}>
      {() => (
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
            <input type="checkbox" checked={wrapping.value === 'on'} onChange={toggleWrap} /> Wrap
            lines
            <kbd>w</kbd>
          </label>
          <h3>Columns</h3>
          {names.map((name) => (
            <label key={name} class="check">
              <input
                type="checkbox"
                checked={columns.includes(name)}
                onChange={() => onColumn(name)}
              />
              {name}
            </label>
          ))}
        </>
      )}
    </Menu>
  )
}

const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

/** The same question for a terminal; the token is the reader's own. */
function curlOf(run: Run): string {
  const given = Object.entries(runParams(run)).filter(([, value]) => value !== '')
  return [
    `curl -sG ${quoted(`${location.origin}/api/logs`)}`,
    '-H "Authorization: Bearer $TOKEN"',
    ...given.map(([name, value]) => `--data-urlencode ${quoted(`${name}=${value}`)}`),
  ].join(' \\\n  ')
}
