import type { ComponentChildren } from 'preact'

interface PanelProps {
  readonly title: string
  readonly class?: string
  readonly children: ComponentChildren
}

export const Panel = ({ title, class: name = '', children }: PanelProps) => (
  <section class={`card ${name}`}>
    <h2>{title}</h2>
    {children}
  </section>
)
