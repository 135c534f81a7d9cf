import type { TargetedKeyboardEvent } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'

import { Icon } from '../lib/icon.js'
import type { IconName } from '../lib/icon-names.js'
import { call } from '../lib/api.js'
import { activeKeys } from '../lib/keys.js'
import { useLoad } from '../lib/load.js'
import { clauseLine } from '../lib/query-edit.js'
import { addressOf, go } from '../lib/router.js'
import { logOut } from '../lib/log-in.js'
import type { SavedView } from '../lib/saved-view.js'
import { may } from '../lib/session.js'
import { theme } from '../lib/settings.js'
import { draft, isPaletteOpen as isOpen } from './open-dialogs.js'
import { SCREENS } from './screens.js'
import type { TabLink } from './tab-links.js'
import { ADMIN_TABS, ALERT_TABS, SOURCE_TABS } from './tabs.js'

interface Command {
  readonly label: string
  readonly icon: IconName
  readonly hint: string
  readonly run: () => void
}

const setTheme = (value: 'light' | 'dark' | 'auto') => () => {
  theme.value = value
}

const MOST_KNOWN = 200

/** Loads saved views, sources, alert rules and the most frequent templates. */
async function findKnown(signal: AbortSignal): Promise<readonly Command[]> {
  const [views, sources, rules, templates] = await Promise.all([
    call<{ readonly items: readonly SavedView[] }>(`/api/saved-views?limit=${MOST_KNOWN}`, {
      signal,
    }),
    call<readonly { readonly name: string }[]>('/api/sources', { signal }),
    call<{ readonly items: readonly { readonly id: string; readonly name: string }[] }>(
      `/api/alert-rules?limit=${MOST_KNOWN}`,
      { signal },
    ),
    call<readonly { readonly template_id: string; readonly template: string }[]>(
      `/api/logs/meta/templates?limit=${MOST_KNOWN}`,
      { signal },
    ),
  ])
  return [
    ...views.items
      .filter(({ kind }) => kind === 'view')
      .map(({ name, screen, params }): Command => ({
        label: name,
        icon: 'history',
        hint: 'view',
        run: () => go(addressOf(`/${screen}`, new URLSearchParams(params))),
      })),
    ...sources.map(({ name }): Command => ({
      label: name,
      icon: 'database',
      hint: 'source',
      run: () => go(addressOf('/explore', new URLSearchParams({ q: clauseLine('source', name) }))),
    })),
    ...rules.items.map(({ id, name }): Command => ({
      label: name,
      icon: 'bell',
      hint: 'rule',
      run: () => go(`/alerts/rules/${id}`),
    })),
    ...templates.map(({ template_id: id, template }): Command => ({
      label: template.replaceAll('<*>', '∗'),
      icon: 'blocks',
      hint: 'template',
      run: () => go(`/templates/${id}`),
    })),
  ]
}

const toTabs = (screen: string, icon: IconName, tabs: readonly TabLink[]): readonly Command[] =>
  tabs
    .filter(({ name, role }) => name !== screen && may(role))
    .map(({ path, name, also }) => ({
      label: `${screen}: ${also === undefined ? name : `${name}, ${also}`}`,
      icon,
      hint: '',
      run: () => go(path),
    }))

const toNew = (name: string, path: string): Command => ({
  label: `New ${name}`,
  icon: 'plus',
  hint: '',
  run: () => go(path),
})

const newIncident: Command = {
  label: 'New incident',
  icon: 'plus',
  hint: '',
  run: () => {
    draft.value = { title: '', severity: 'P2', source: null, event_ids: [], evidence: [] }
  },
}

/** Parts of screens and actions in them, which are listed only after something is typed. */
const parts = (): readonly Command[] => [
  ...toTabs('Alerts', 'bell', ALERT_TABS),
  ...toTabs('Sources', 'database', SOURCE_TABS),
  ...toTabs('Admin', 'settings', ADMIN_TABS),
  ...(may('manager')
    ? [
        toNew('alert rule', '/alerts/rules/new'),
        toNew('silence', '/alerts/quiet?silence='),
        toNew('maintenance window', '/alerts/quiet?window='),
        newIncident,
      ]
    : []),
]

const MOST_FOUND = 50

function commands(typed: string, known: readonly Command[]): readonly Command[] {
  const search: Command = {
    label: `Search logs for ${typed}`,
    icon: 'search',
    hint: 'Explore',
    run: () => go(addressOf('/explore', new URLSearchParams({ q: typed }))),
  }
  const all: readonly Command[] = [
    ...SCREENS.map(({ name, path, icon, key }): Command => ({
      label: name,
      icon,
      hint: `g ${key}`,
      run: () => go(path),
    })),
    ...[...activeKeys()].flatMap(([group, bindings]) =>
      group === 'Everywhere'
        ? []
        : bindings
            .filter(({ key }) => key.length === 1)
            .map(({ label, key, run }): Command => ({
              label,
              icon: 'square-terminal',
              hint: key,
              run,
            })),
    ),
    { label: 'Light theme', icon: 'sun', hint: '', run: setTheme('light') },
    { label: 'Dark theme', icon: 'moon', hint: '', run: setTheme('dark') },
    { label: 'Theme of the system', icon: 'monitor', hint: '', run: setTheme('auto') },
    {
      label: 'API reference and guides',
      icon: 'circle-help',
      hint: '/docs',
      run: () => location.assign('/docs'),
    },
    { label: 'Log out', icon: 'log-out', hint: '', run: () => void logOut() },
  ]
  const words = typed.toLowerCase().split(/\s+/)
  if (typed === '') return all
  const found = [...all, ...parts(), ...known].filter(({ label }) =>
    words.every((word) => label.toLowerCase().includes(word)),
  )
  return [...found.slice(0, MOST_FOUND), search]
}

/** The command palette: finds screens and actions by a few letters. */
export function Palette() {
  const dialog = useRef<HTMLDialogElement>(null)
  const [typed, setTyped] = useState('')
  const [chosen, setChosen] = useState(0)
  // Opens before the next key event, so that no letter is lost.
  useLayoutEffect(() => dialog.current?.showModal(), [])
  const known = useLoad('known', findKnown).value ?? []
  const found = commands(typed.trim(), known)
  const close = (): void => {
    isOpen.value = false
  }
  const run = (command: Command | undefined): void => {
    if (command === undefined) return
    close()
    command.run()
  }
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLInputElement>): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key] ?? 0
    if (step !== 0) setChosen((chosen + step + found.length) % found.length)
    else if (event.key === 'Enter') run(commands(event.currentTarget.value.trim(), known)[chosen])
    else return
    event.preventDefault()
  }
  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label="Go to or do something"
      onCancel={close}
      onClose={close}
    >
      <input
        autofocus
        value={typed}
        placeholder="A screen, source, view, rule or action, or words to find"
        aria-label="Go to or do something"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={`palette-${chosen}`}
        spellcheck={false}
        onInput={({ currentTarget }) => {
          setTyped(currentTarget.value)
          setChosen(0)
        }}
        onKeyDown={onKeyDown}
      />
      <ul role="listbox" id="palette-list" aria-label="Found">
        {found.map((command, at) => (
          <li
            key={`${command.hint} ${command.label} ${at}`}
            id={`palette-${at}`}
            role="option"
            aria-selected={at === chosen}
            onPointerMove={() => setChosen(at)}
            onClick={() => run(command)}
          >
            <Icon name={command.icon} />
            <span>{command.label}</span>
            <kbd>{command.hint}</kbd>
          </li>
        ))}
      </ul>
    </dialog>
  )
}
