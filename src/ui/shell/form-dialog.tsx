import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'

import { told } from '../lib/api.js'
import { Dialog } from './dialog.js'
import { formTexts } from './form.js'

interface FormDialogProps {
  readonly title: string
  /** What its button says. */
  readonly action: string
  readonly isReady?: boolean
  readonly onClose: () => void
  /** Gives what is wrong with the texts, or rejects with what the service says. */
  readonly onSubmit: (text: (name: string) => string) => string | Promise<unknown>
  readonly children: ComponentChildren
  /** What can be done instead. */
  readonly instead?: ComponentChildren
}

/** Fields before everything else, which are sent or left. */
export function FormDialog(props: FormDialogProps) {
  const { title, action, isReady = true, onClose, onSubmit, children, instead } = props
  const [problem, setProblem] = useState('')
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    const sent = onSubmit(formTexts(event.currentTarget))
    if (typeof sent === 'string') setProblem(sent)
    else sent.catch((error: unknown) => setProblem(told(error)))
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="form" onSubmit={submit}>
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
