import { useEffect } from 'preact/hooks'

import { count, counted } from '../lib/format.js'
import { Icon } from '../lib/icon.js'
import { lazy } from '../lib/lazy.js'
import type { Loaded } from '../lib/load.js'
import { setParams } from '../lib/router.js'
import { Menu } from '../shell/menu.js'
import type { FacetReply, Histogram, Run } from './answers.js'
import { FieldsToggle } from './fields-toggle.js'
import { ShapeSwitch, type Shape } from './shapes.js'
import { colorsOf, orderOf, partName } from './stack.js'
import { learnTemplates } from './templates-known.js'

const ColumnChoices = lazy(async () => (await import('../later.js')).ColumnChoices)
const ViewChoices = lazy(async () => (await import('../later.js')).ViewChoices)
const ExportChoices = lazy(async () => (await import('../later.js')).ExportChoices)
const CopyChoices = lazy(async () => (await import('../later.js')).CopyChoices)

const BY = ['severity', 'priority', 'source', 'host', 'environment', 'template'] as const

interface SummaryProps {
  readonly run: Run
  readonly shape: Shape
  readonly columns: readonly string[]
  readonly histogram: Loaded<Histogram>
  /** Null while they are not known. */
  readonly facets: FacetReply | null
  readonly by: string
  readonly onColumn: (name: string) => void
}

/** The numbers of the result, and the actions on it. */
export function Summary({ run, shape, columns, histogram, facets, by, onColumn }: SummaryProps) {
  const { value, tookMs } = histogram
  const templates = facets?.facets.find(({ field }) => field === 'template')?.distinct
  return (
    <div class="summary-line">
      <FieldsToggle />
      <ShapeSwitch shape={shape} />
      <p class="totals" role="status">
        {value !== null && (
          <>
            <strong>{count(value.total)}</strong>{' '}
            <small class="wide-only">{value.total === 1 ? 'occurrence' : 'occurrences'}</small>
            <span>{counted(value.unique_events, 'event')}</span>
            {templates !== undefined && (
              <span class="wide-only">{counted(templates, 'template')}</span>
            )}
            <span class="timing">{tookMs} ms</span>
            <span class="timing">
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
      <Menu label="Columns and lines" class="quiet square" face={<Icon name="columns-3" />}>
        {() => <ColumnChoices columns={columns} onColumn={onColumn} />}
      </Menu>
      <Menu label="Export all events" class="quiet square" face={<Icon name="download" />}>
        {(close) => <ExportChoices run={run} total={value?.unique_events ?? null} close={close} />}
      </Menu>
      <Menu label="Saved views and history" class="quiet square" face={<Icon name="history" />}>
        {(close) => <ViewChoices close={close} />}
      </Menu>
      <Menu label="Copy, alert" class="quiet square" face={<Icon name="link" />}>
        {(close) => <CopyChoices run={run} close={close} />}
      </Menu>
    </div>
  )
}

const isPlainBy = (by: string): boolean => BY.some((name) => name === by)

function Legend({ histogram }: { readonly histogram: Histogram }) {
  const colors = colorsOf(histogram)
  const { by } = histogram
  useEffect(() => {
    if (by === 'template') learnTemplates(histogram.values.map(({ value }) => value))
  }, [histogram])
  return (
    <ul class="legend wide-only">
      {orderOf(histogram)
        .toReversed()
        .slice(0, 6)
        .map((name) => (
          <li key={name}>
            <i style={{ background: colors.get(name) ?? '' }} />
            {partName(name, by)}
          </li>
        ))}
    </ul>
  )
}
