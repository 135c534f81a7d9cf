import type { ComponentChildren } from 'preact'

interface PanelProps {
  readonly title: string
  readonly class?: string
  /** Whether what is to be shown is on its way. */
  readonly isWaiting?: boolean
  readonly children?: ComponentChildren
}

export const Panel = ({ title, class: name = '', isWaiting = false, children }: PanelProps) => (
  <section class={`card ${name} ${isWaiting ? 'waiting' : ''}`} aria-busy={isWaiting}>
    <h2>{title}</h2>
    {children}
  </section>
)
