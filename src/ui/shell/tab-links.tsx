import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

import { may, type User } from '../lib/session.js'

export interface TabLink {
  readonly path: string
  readonly name: string
  readonly role: User['role']
  /** Further words by which the palette finds it. */
  readonly also?: string
}

interface TabLinksProps {
  readonly label: string
  readonly tabs: readonly TabLink[]
  readonly path: string
  /** A badge after the name of a tab. */
  readonly badge?: (path: string) => ComponentChildren
}

/** The tabs of a screen that the user may open. */
export function TabLinks({ label, tabs, path, badge }: TabLinksProps) {
  const root = useRef<HTMLElement>(null)
  // On a narrow screen the tabs scroll sideways.
  useEffect(
    () => root.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' }),
    // Badges appear later.
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
