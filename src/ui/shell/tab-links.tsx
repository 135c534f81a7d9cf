import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

import { may, type User } from '../lib/session.js'

export interface TabLink {
  readonly path: string
  readonly name: string
  readonly role: User['role']
  /** What else it has, by which it is found. */
  readonly also?: string
}

interface TabLinksProps {
  readonly label: string
  readonly tabs: readonly TabLink[]
  readonly path: string
  /** What stands behind the name of a tab. */
  readonly badge?: (path: string) => ComponentChildren
}

/** The parts of a screen, those that the user may see. */
export function TabLinks({ label, tabs, path, badge }: TabLinksProps) {
  const root = useRef<HTMLElement>(null)
  // On a narrow screen they are scrolled sideways.
  useEffect(
    () => root.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' }),
    // What stands behind a name comes later.
    [path, tabs.filter((tab) => badge?.(tab.path)).length],
  )
  return (
    <nav class="tabs" aria-label={label} ref={root}>
      {tabs
        .filter(({ role }) => may(role))
        .map((tab) => (
          <a key={tab.path} href={tab.path} aria-current={tab.path === path ? 'page' : undefined}>
            {tab.name}
            {badge?.(tab.path)}
          </a>
        ))}
    </nav>
  )
}
