import { signal } from '@preact/signals'

import { Icon } from '../lib/icon.js'

interface Said {
  readonly text: string
  readonly kind: 'done' | 'problem'
}

const said = signal<Said>({ text: '', kind: 'done' })
let timer = 0

/** Shows a message for a few seconds. */
export function notice(text: string, kind: Said['kind'] = 'done'): void {
  said.value = { text, kind }
  clearTimeout(timer)
  timer = window.setTimeout(() => {
    said.value = { text: '', kind }
  }, 5000)
}

export async function copy(what: string, done: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(what)
    notice(done)
  } catch {
    notice('The browser does not allow copying here.', 'problem')
  }
}

export const Notice = () => (
  <div class="notice" role="status" hidden={said.value.text === ''}>
    <Icon name={said.value.kind === 'done' ? 'check' : 'circle-alert'} /> {said.value.text}
  </div>
)
