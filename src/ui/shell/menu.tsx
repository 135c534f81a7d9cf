import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'

interface MenuProps {
  /** The name of the button, visible or for screen readers. */
  readonly label: string
  readonly face: ComponentChildren
  readonly class?: string
  readonly align?: 'start' | 'end'
  readonly children: (close: () => void) => ComponentChildren
}

/** A button that opens a panel below it; Escape and a click elsewhere close it. */
export function Menu({ label, face, align = 'end', children, class: name = '' }: MenuProps) {
  const [isOpen, setOpen] = useState(false)
  const root = useRef<HTMLDivElement>(null)
  const close = (): void => setOpen(false)

  useLayoutEffect(() => {
    if (!isOpen) return
    root.current?.querySelector<HTMLElement>('.panel :is([autofocus], button, a)')?.focus()
    const onPress = (event: PointerEvent): void => {
      if (event.target instanceof Node && root.current?.contains(event.target) === false) close()
    }
    addEventListener('pointerdown', onPress)
    return () => removeEventListener('pointerdown', onPress)
  }, [isOpen])

  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Escape' || !isOpen) return
    event.stopPropagation()
    close()
    root.current?.querySelector('button')?.focus()
  }

  return (
    <div class="menu" ref={root} onKeyDown={onKeyDown}>
      <button
        class={name}
        aria-label={label}
        title={label}
        aria-expanded={isOpen}
        aria-haspopup="true"
        onClick={() => setOpen(!isOpen)}
      >
        {face}
      </button>
      {isOpen && <div class={`panel ${align}`}>{children(close)}</div>}
    </div>
  )
}
