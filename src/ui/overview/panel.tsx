import type { ComponentChildren } from 'preact'

import type { Loaded } from '../lib/load.js'
import { Problem } from '../shell/problem.js'

interface PanelProps {
  readonly title: string
  readonly class?: string
  /** The content of a panel, or the reason why there is none. */
  readonly of?: Loaded<unknown>
  /** Whether the content is still loading. */
  readonly isWaiting?: boolean
  readonly children?: ComponentChildren
}

export function Panel({ title, class: name = '', of, children, ...props }: PanelProps) {
  const hasFailed = of !== undefined && of.error !== null
  const { isWaiting = of?.value === null && !hasFailed } = props
  return (
    <section class={`card ${name} ${isWaiting ? 'waiting' : ''}`} aria-busy={isWaiting}>
      <h2>{title}</h2>
      {hasFailed ? <Problem of={of} /> : children}
    </section>
  )
}
