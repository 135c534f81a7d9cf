import { signal } from '@preact/signals'

import { Icon } from '../lib/icon.js'

const text = signal('')
let timer = 0

/** Says for a few seconds what has happened. */
export function notice(said: string): void {
  text.value = said
  clearTimeout(timer)
  timer = window.setTimeout(() => {
    text.value = ''
  }, 4000)
}

export async function copy(what: string, said: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(what)
    notice(said)
  } catch {
    notice('The browser does not allow copying here.')
  }
}

export const Notice = () => (
  <div class="notice" role="status" hidden={text.value === ''}>
    <Icon name="check" /> {text.value}
  </div>
)
