import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'

import { count, percent, short } from '../lib/format.js'
import { Icon } from '../lib/icon.js'
import { useLoad, type Loaded } from '../lib/load.js'
import { only, stateOf, without } from '../lib/query-edit.js'
import {
  askFacet,
  MOST_VALUES,
  OPEN_AT_FIRST,
  type FacetReply,
  type FieldInfo,
  type FieldsReply,
  type Run,
} from './answers.js'

/** The most attributes that are listed; others are found by typing their names into the query. */
const MOST_ATTRIBUTES = 80

type Facet = FacetReply['facets'][number]

interface FieldsProps {
  readonly run: Run
  readonly runKey: string
  readonly fields: FieldsReply | null
  readonly facets: Loaded<FacetReply>
  readonly columns: readonly string[]
  readonly onLine: (line: string) => void
  readonly onColumn: (name: string) => void
}

/** The fields of the matching events with their most frequent values. A click filters by a value, with Alt excludes it. */
export function Fields({ run, runKey, fields, facets, columns, onLine, onColumn }: FieldsProps) {
  const values = (facet: Facet, total: number): ComponentChildren => (
    <Values facet={facet} total={total} run={run} runKey={runKey} onLine={onLine} />
  )
  const known = fields?.items ?? []
  const attributes = known.filter(({ kind }) => kind === 'attribute')
  const closed = (info: FieldInfo): ComponentChildren => (
    <ClosedField
      key={info.field}
      info={info}
      run={run}
      runKey={runKey}
      isColumn={columns.includes(info.field)}
      values={values}
      onColumn={onColumn}
    />
  )
  // The values of all open fields appear at once, so that nothing is pushed down.
  if (facets.value === null && facets.error === null)
    return <aside class="fields" aria-label="Fields" aria-busy="true" />
  return (
    <aside class="fields" aria-label="Fields">
      {OPEN_AT_FIRST.map((name) => {
        const facet = facets.value?.facets.find(({ field }) => field === name)
        if (facet !== undefined && isPlain(facet)) return null
        return (
          <section key={name}>
            <h2>{name}</h2>
            {facet === undefined ? <p class="note">–</p> : values(facet, facets.value?.total ?? 0)}
          </section>
        )
      })}
      {known.filter(({ field }) => field === 'environment').map(closed)}
      {attributes.length > 0 && <h2 class="group">Attributes</h2>}
      {attributes.slice(0, MOST_ATTRIBUTES).map(closed)}
      {attributes.length > MOST_ATTRIBUTES && (
        <p class="note">{attributes.length - MOST_ATTRIBUTES} more: type a name into the query</p>
      )}
    </aside>
  )
}

/** Whether no event has the field. */
const isPlain = ({ values }: Facet): boolean => values.every(({ value }) => value === '')

interface ClosedFieldProps {
  readonly info: FieldInfo
  readonly run: Run
  readonly runKey: string
  readonly isColumn: boolean
  readonly values: (facet: Facet, total: number) => ComponentChildren
  readonly onColumn: (name: string) => void
}

/** A field whose values are loaded when it is opened, because all events are read for them. */
function ClosedField(props: ClosedFieldProps) {
  const { info, run, runKey, isColumn, values, onColumn } = props
  const [isOpen, setOpen] = useState(false)
  const key = isOpen ? `facet ${info.field} ${runKey}` : null
  const facets = useLoad(key, (signal) => askFacet(run, info.field, {}, signal))
  const [facet] = facets.value?.facets ?? []
  return (
    <section>
      <div class="attribute">
        <button
          class="name"
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
          title={info.field}
        >
          <Icon name={isOpen ? 'chevron-down' : 'chevron-right'} size={12} />
          <span>{info.field}</span>
          {info.share !== null && <small>{percent(info.share)}</small>}
        </button>
        <button
          class="quiet tiny"
          aria-pressed={isColumn}
          aria-label={`Column ${info.field}`}
          title={isColumn ? 'Remove the column' : 'Show as a column'}
          onClick={() => onColumn(info.field)}
        >
          <Icon name="columns-3" size={12} />
        </button>
      </div>
      {isOpen && facet !== undefined && values(facet, facets.value?.total ?? 0)}
    </section>
  )
}

interface ValuesProps {
  readonly facet: Facet
  readonly total: number
  readonly run: Run
  readonly runKey: string
  readonly onLine: (line: string) => void
}

function Values({ facet: few, total, run, runKey, onLine }: ValuesProps) {
  const [isMore, setMore] = useState(false)
  const key = isMore ? `values ${few.field} ${runKey}` : null
  const many = useLoad(key, (signal) => askFacet(run, few.field, { top: MOST_VALUES }, signal))
  const { field, values, distinct } = (isMore ? many.value?.facets[0] : undefined) ?? few
  const most = Math.max(...values.map((one) => one.count), 1)
  const toggle = (value: string, isNot: boolean): void =>
    onLine((isNot ? without : only)(run.line, field, value))
  return (
    <ul>
      {values.map(({ value, count: n }) => {
        const state = stateOf(run.line, field, value)
        const name = value === '' ? '(none)' : value
        return (
          <li key={value} class={state}>
            <button
              class="value"
              title={`${name}: ${count(n)}. Alt: without it`}
              aria-pressed={state === 'only'}
              onClick={(event) => toggle(value, event.altKey)}
            >
              <span
                class={`bar ${field === 'severity' || field === 'priority' ? value.toLowerCase() : ''}`}
                style={{ width: `${(n / most) * 100}%` }}
              />
              <span class="text">{name}</span>
              <span class="count">{short(n)}</span>
            </button>
            <button
              class="quiet tiny"
              aria-label={`Without ${name}`}
              title="Without it"
              aria-pressed={state === 'not'}
              onClick={() => toggle(value, true)}
            >
              <Icon name="minus" size={12} />
            </button>
          </li>
        )
      })}
      {distinct > values.length && (
        <li class="more">
          {values.length < MOST_VALUES ? (
            <button class="link" disabled={isMore} onClick={() => setMore(true)}>
              {short(distinct - values.length)} more values
            </button>
          ) : (
            `${short(distinct - values.length)} more values`
          )}
        </li>
      )}
      {values.length > 0 && total === 0 && <li class="more">none</li>}
    </ul>
  )
}
