import { useLayoutEffect, useRef, useState } from 'preact/hooks'

import { useEvery } from '../lib/every.js'
import { activeKeys } from '../lib/keys.js'
import { areKeysOpen as isOpen } from './open-dialogs.js'

const NAMES: Readonly<Record<string, string>> = {
  ' ': 'Space',
  ArrowDown: '↓',
  ArrowUp: '↑',
  ArrowLeft: '←',
  ArrowRight: '→',
  Enter: '↵',
  Escape: 'Esc',
  Home: 'Home',
  End: 'End',
  PageDown: 'PgDn',
  PageUp: 'PgUp',
  'mod+k': 'Ctrl K',
}
/** The pause between updates, because rows register their keys later. */
const REDRAW_MS = 300
const keyText = (key: string): string => NAMES[key] ?? key

/** The help: the keys of the current screen. */
export function KeysHelp() {
  const dialog = useRef<HTMLDialogElement>(null)
  const [, redraw] = useState(0)
  useEvery(REDRAW_MS, () => redraw((n) => n + 1))
  useLayoutEffect(() => {
    dialog.current?.showModal()
    // The button at the end gets the focus, so the list is scrolled back to its start.
    dialog.current?.scrollTo(0, 0)
  }, [])
  const close = (): void => {
    isOpen.value = false
  }
  return (
    <dialog ref={dialog} class="keys" aria-label="Keys" onCancel={close} onClose={close}>
      {[...activeKeys()].map(([group, bindings]) => (
        <section key={group}>
          <h2>{group}</h2>
          <dl>
            {bindings.map(({ key, label }) => (
              <div key={key}>
                <dt>
                  <kbd>{keyText(key)}</kbd>
                </dt>
                <dd>{label}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
      <form method="dialog">
        <button class="primary" onClick={close}>
          Close
        </button>
      </form>
    </dialog>
  )
}
