import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  /** Escape closes it unless this prevents it. */
  readonly onCancel?: (event: Event) => void
  readonly children: ComponentChildren
}

/** A modal form or text; Escape closes it. */
export function Dialog({ title, onClose, onCancel, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} class="modal" aria-label={title} onClose={onClose} onCancel={onCancel}>
      <h2>{title}</h2>
      {children}
    </dialog>
  )
}
