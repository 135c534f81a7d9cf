import { useState } from 'preact/hooks'

import { act } from '../lib/act.js'
import { call, messageOf } from '../lib/api.js'
import { counted } from '../lib/format.js'
import { useEvery } from '../lib/every.js'
import { Icon } from '../lib/icon.js'
import { usePaged } from '../lib/paged.js'
import { place } from '../lib/router.js'
import type { SavedView } from '../lib/saved-view.js'
import { may, user } from '../lib/session.js'
import type { Range } from '../lib/time.js'
import { ImportButton } from '../shell/import-button.js'
import { notice } from '../shell/notice.js'
import { ConfirmButton } from '../shell/confirm-button.js'
import { BoardPanel } from './board-panel.js'
import { Problem } from '../shell/problem.js'

const PATH = '/api/saved-views'
const EVERY_MS = 60_000

/** The panels of all dashboards that the user may see. */
export function usePanels() {
  const list = usePaged<SavedView>(PATH, { limit: 200 })
  const panels = (list.items ?? []).filter(({ kind }) => kind !== 'view')
  return { panels, isLoaded: list.items !== null, error: list.error, reload: list.reload }
}

type Panels = ReturnType<typeof usePanels>

/** The name of a panel's dashboard. */
export const boardOf = ({ dashboard = '' }: SavedView): string => dashboard || 'Dashboard'

interface DashboardProps extends Panels {
  readonly name: string
}

/** A dashboard: its panels are saved views, each a link to its events. They are reloaded every minute. */
export function Dashboard({ name, panels, isLoaded, error, reload }: DashboardProps) {
  const [turn, setTurn] = useState(0)
  useEvery(EVERY_MS, () => setTurn((n) => n + 1))
  const shown = panels.filter((view) => boardOf(view) === name)
  const mayDelete = (view: SavedView): boolean =>
    view.is_for_all ? may('manager') : view.owner_id === user.value?.id
  const remove = (view: SavedView): void =>
    void act(
      call(`${PATH}/${view.id}`, { method: 'DELETE' }),
      `The panel ${view.name} is deleted.`,
    ).then(reload)
  return (
    <>
      <Problem of={{ error, reload }} />
      <Tools name={name} panels={panels} reload={reload} />
      {isLoaded && shown.length === 0 && (
        <div class="found empty dashboard-empty">
          <Icon name="gauge" size={22} />
          <h2>No panels yet</h2>
          <p>
            Search in <a href="/explore">Explore</a>, then save the view as a chart, a top list, a
            number or a table.
          </p>
        </div>
      )}
      <div class="panels dashboard">
        {shown.map((view) => (
          <BoardPanel key={view.id} view={view} range={givenRange()} turn={turn}>
            {mayDelete(view) && (
              <span class="delete">
                <ConfirmButton label="Delete" sure="Delete it" onSure={() => remove(view)} />
              </span>
            )}
          </BoardPanel>
        ))}
      </div>
    </>
  )
}

/** The time range in the address; without one each panel has its own. */
function givenRange(): Range | null {
  const { params } = place.value
  const from = params.get('from')
  return from === null ? null : { from, to: params.get('to') ?? 'now' }
}

interface ToolsProps {
  readonly name: string
  readonly panels: readonly SavedView[]
  readonly reload: () => void
}

function Tools({ name, panels, reload }: ToolsProps) {
  const shown = panels.filter((view) => boardOf(view) === name)
  const take = (file: File): void => {
    importPanels(file, panels)
      .then(({ created, present }) =>
        notice(
          `Imported: ${counted(created, 'panel')}${present === 0 ? '' : `; ${present} are here already`}.`,
        ),
      )
      .catch((problem: unknown) =>
        notice(
          problem instanceof SyntaxError ? 'The file has no panels in JSON.' : messageOf(problem),
          'problem',
        ),
      )
      .finally(reload)
  }
  return (
    <p class="line dashboard-tools">
      <span class="note">
        Panels are views saved in Explore. A click on a title opens its events.
      </span>
      {shown.length > 0 && (
        <a class="button" download={`${name}.json`} href={fileOf(shown)}>
          <Icon name="download" size={14} /> Export
        </a>
      )}
      <ImportButton onFile={take} />
    </p>
  )
}

/** The panels as a JSON file, in the form that the API takes. */
function fileOf(shown: readonly SavedView[]): string {
  const panels = shown.map(({ name, screen, kind, params, dashboard = '' }) => ({
    name,
    screen,
    kind,
    params,
    dashboard,
    is_for_all: false,
    is_default: false,
  }))
  return `data:application/json,${encodeURIComponent(JSON.stringify({ panels }, null, 2))}`
}

/**
 * Imports panels. One that exists already is left out, so that a file can be imported again after
 * an interruption.
 *
 * @returns the number of created panels, and that of panels that existed already
 * @throws SyntaxError, ApiError
 */
async function importPanels(file: File, here: readonly SavedView[]) {
  const parsed = JSON.parse(await file.text()) as { readonly panels?: unknown }
  if (!Array.isArray(parsed.panels)) throw new SyntaxError('no panels')
  const known = new Set(here.map(contentOf))
  // The API checks each of them.
  const panels = parsed.panels as readonly (SavedView | null)[]
  const missing = panels.filter((one) => !known.has(contentOf(one)))
  for (const json of missing) await call(PATH, { method: 'POST', json })
  return { created: missing.length, present: panels.length - missing.length }
}

const contentOf = (view: SavedView | null): string =>
  JSON.stringify([view?.dashboard ?? '', view?.name, view?.screen, view?.kind, view?.params])
