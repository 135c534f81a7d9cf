import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'

import { messageOf } from '../lib/api.js'
import { Dialog } from './dialog.js'
import { formTexts } from './form.js'

interface FormDialogProps {
  readonly title: string
  /** The text of the submit button. */
  readonly action: string
  readonly isReady?: boolean
  readonly onClose: () => void
  /** Returns the fault in the texts, or rejects with the service's error. */
  readonly onSubmit: (text: (name: string) => string) => string | Promise<unknown>
  readonly children: ComponentChildren
  /** An alternative to submitting. */
  readonly instead?: ComponentChildren
}

const DROPS = 'Escape once more drops what you typed.'

/** A modal form that is sent once; Escape asks before it discards what was typed. */
export function FormDialog(props: FormDialogProps) {
  const { title, action, isReady = true, onClose, onSubmit, children, instead } = props
  const [problem, setProblem] = useState('')
  const isBusy = useRef(false)
  const isTyped = useRef(false)
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    if (isBusy.current) return
    const sent = onSubmit(formTexts(event.currentTarget))
    if (typeof sent === 'string') return setProblem(sent)
    isBusy.current = true
    sent
      .catch((error: unknown) => setProblem(messageOf(error)))
      .finally(() => {
        isBusy.current = false
      })
  }
  const cancel = (event: Event): void => {
    if (!isTyped.current || problem === DROPS) return
    event.preventDefault()
    setProblem(DROPS)
  }
  const typed = (): void => {
    isTyped.current = true
  }
  return (
    <Dialog title={title} onClose={onClose} onCancel={cancel}>
      <form class="form" onSubmit={submit} onInput={typed}>
        {children}
        {problem !== '' && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <p class="line">
          <button class="primary" disabled={!isReady}>
            {action}
          </button>
          <button type="button" class="quiet" onClick={onClose}>
            Cancel
          </button>
        </p>
        {instead}
      </form>
    </Dialog>
  )
}
