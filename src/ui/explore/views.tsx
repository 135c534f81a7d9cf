import { useState } from 'preact/hooks'

import { act } from '../lib/act.js'
import { call } from '../lib/api.js'
import { Icon } from '../lib/icon.js'
import { usePaged } from '../lib/paged.js'
import { recentLines } from '../lib/recent.js'
import { addressOf, go, place, setParams } from '../lib/router.js'
import type { SavedView, ViewKind } from '../lib/saved-view.js'
import { may, user } from '../lib/session.js'
import { formTexts } from '../shell/form.js'
import { Problem } from '../shell/problem.js'

const PATH = '/api/saved-views'

/** Saved views and recent queries. */
export function ViewChoices({ close }: { readonly close: () => void }) {
  const list = usePaged<SavedView>(PATH, { limit: 200 })
  const [isSaving, setSaving] = useState(false)
  const views = (list.items ?? []).filter(({ kind }) => kind === 'view')
  const open = (view: SavedView): void => {
    close()
    go(addressOf(`/${view.screen}`, new URLSearchParams(view.params)))
  }
  if (isSaving) return <SaveForm onClose={() => setSaving(false)} onSaved={close} />
  return (
    <>
      <button class="item" onClick={() => setSaving(true)}>
        <Icon name="plus" size={14} /> Save this view …
      </button>
      <Problem of={list} />
      {views.length > 0 && <h3>Saved</h3>}
      {views.map((view) => (
        <div key={view.id} class="saved">
          <button class="item" onClick={() => open(view)} title={view.params}>
            <span>{view.name}</span>
            <small>
              {view.is_for_all ? 'all' : 'me'}
              {view.is_default && ', default'}
            </small>
          </button>
          {(view.is_for_all ? may('manager') : view.owner_id === user.value?.id) && (
            <button
              class="quiet tiny"
              aria-label={`Delete ${view.name}`}
              title="Delete"
              onClick={() =>
                void act(
                  call(`${PATH}/${view.id}`, { method: 'DELETE' }),
                  `${view.name} is deleted.`,
                ).then(() => list.reload())
              }
            >
              <Icon name="x" size={13} />
            </button>
          )}
        </div>
      ))}
      {recentLines().length > 0 && <h3>History</h3>}
      {recentLines().map((line) => (
        <button
          key={line}
          class="item"
          onClick={() => {
            close()
            setParams({ q: line, id: null })
          }}
        >
          <code>{line}</code>
        </button>
      ))}
    </>
  )
}

interface SaveFormProps {
  readonly onClose: () => void
  readonly onSaved: () => void
}

const KINDS: readonly (readonly [kind: ViewKind, name: string])[] = [
  ['view', 'a view to open again'],
  ['series', 'panel: a chart'],
  ['top', 'panel: a top list'],
  ['number', 'panel: a number'],
  ['table', 'panel: newest events'],
]

function SaveForm({ onClose, onSaved }: SaveFormProps) {
  const [kind, setKind] = useState<ViewKind>('view')
  const save = (event: SubmitEvent): void => {
    event.preventDefault()
    const text = formTexts(event.currentTarget)
    const params = new URLSearchParams(place.value.params)
    for (const name of ['id', 'tab', 'why']) params.delete(name)
    const json = {
      name: text('name'),
      screen: 'explore',
      kind,
      ...(kind === 'view' ? {} : { dashboard: text('dashboard') }),
      params: params.toString(),
      is_for_all: text('who') === 'all',
      is_default: text('default') !== '',
    }
    void act(
      call(PATH, { method: 'POST', json }),
      kind === 'view' ? 'The view is saved.' : 'The panel is on its dashboard in Overview.',
    ).then((done) => done !== null && onSaved())
  }
  return (
    <form class="form save-view" onSubmit={save}>
      <label class="field">
        Name
        <input
          name="name"
          required
          maxLength={120}
          defaultValue={place.value.params.get('q') ?? ''}
          autofocus
        />
      </label>
      <label class="field">
        As
        <select
          value={kind}
          onChange={({ currentTarget }) =>
            setKind(KINDS.find(([one]) => one === currentTarget.value)?.[0] ?? 'view')
          }
        >
          {KINDS.map(([one, name]) => (
            <option key={one} value={one}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {kind !== 'view' && (
        <label class="field">
          Dashboard
          <input name="dashboard" maxLength={120} placeholder="Dashboard" />
        </label>
      )}
      <label class="field">
        For
        <select name="who">
          <option value="me">me</option>
          {may('manager') && <option value="all">all</option>}
        </select>
      </label>
      {kind === 'view' && (
        <label class="check">
          <input type="checkbox" name="default" /> the page opens with it
        </label>
      )}
      <p class="line">
        <button class="primary">Save</button>
        <button type="button" class="quiet" onClick={onClose}>
          Cancel
        </button>
      </p>
    </form>
  )
}

/** The initial address when the given one has no parameters: that of the user's default view, else the default view of all. */
export async function startAddress(given: URLSearchParams): Promise<string> {
  if (given.size > 0) return addressOf('/explore', given)
  try {
    const { items } = await call<{ readonly items: readonly SavedView[] }>(`${PATH}?limit=200`)
    const defaults = items.filter((one) => one.is_default && one.screen === 'explore')
    const view = defaults.find((one) => !one.is_for_all) ?? defaults[0]
    return addressOf('/explore', new URLSearchParams(view?.params ?? ''))
  } catch {
    return '/explore'
  }
}
