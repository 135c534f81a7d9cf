import { useLayoutEffect } from 'preact/hooks'

import { isDialogOpening } from '../shell/open-dialogs.js'

/** A key with its action, as listed in the help. */
export interface Binding {
  /** The key as in `KeyboardEvent.key`, with `mod+` for Control or Command; a sequence of two keys is separated by a blank. */
  readonly key: string
  readonly label: string
  readonly run: () => void
}

const groups = new Map<string, readonly Binding[]>()

/** The active keys, by the part of the page. */
export const activeKeys = (): ReadonlyMap<string, readonly Binding[]> => groups

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName))

const nameOf = ({ key, metaKey, ctrlKey }: KeyboardEvent): string =>
  metaKey || ctrlKey ? `mod+${key.toLowerCase()}` : key

/** Whether a key belongs to the focused element, or to an open dialog. */
function isTaken(name: string, target: EventTarget | null): boolean {
  if (name.startsWith('mod+')) return false
  if (isTyping(target) || isDialogOpening() || document.querySelector('dialog[open]') !== null)
    return true
  const isOnControl = target instanceof Element && target.closest('button, a, summary') !== null
  return isOnControl && (name === 'Enter' || name === ' ')
}

/** The first key of a sequence of two, while the second one is awaited. */
let begun = ''
let timer = 0
const SECOND_KEY_MS = 1500

function begin(name: string): void {
  clearTimeout(timer)
  begun = name
  if (name !== '') timer = window.setTimeout(() => begin(''), SECOND_KEY_MS)
}

function onKey(event: KeyboardEvent): void {
  const last = nameOf(event)
  if (event.defaultPrevented || event.altKey || isTaken(last, event.target)) return
  const name = begun === '' ? last : `${begun} ${last}`
  begin('')
  // The keys of the part that was opened last come first.
  for (const bindings of [...groups.values()].toReversed()) {
    const found = bindings.find(({ key }) => key === name)
    if (found === undefined) continue
    event.preventDefault()
    found.run()
    return
  }
  const all = [...groups.values()].flat()
  if (all.some(({ key }) => key.startsWith(`${name} `))) begin(name)
}

addEventListener('keydown', onKey)

/** Activates keys while the calling component is shown. */
export function useKeys(group: string, bindings: readonly Binding[]): void {
  // Runs before the next key event.
  useLayoutEffect(() => {
    groups.set(group, bindings)
    return () => {
      if (groups.get(group) === bindings) groups.delete(group)
    }
  })
}
