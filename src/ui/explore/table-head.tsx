import { Icon } from '../lib/icon.js'
import { tracksOf } from './event-row.js'

interface TableHeadProps {
  readonly columns: readonly string[]
  readonly withDay: boolean
  readonly onColumn: (name: string) => void
}

/** The headers of the columns; each column can be removed. */
export const TableHead = ({ columns, withDay, onColumn }: TableHeadProps) => (
  <div
    class="table-head"
    style={`--columns: ${tracksOf(columns)}; --time-width: ${withDay ? '9.4rem' : '6.2rem'}`}
  >
    {columns.map((name) => (
      <span key={name}>
        {name}
        {name !== 'message' && (
          <button
            class="quiet tiny"
            aria-label={`Remove the column ${name}`}
            title="Remove the column"
            onClick={() => onColumn(name)}
          >
            <Icon name="x" size={11} />
          </button>
        )}
      </span>
    ))}
  </div>
)
