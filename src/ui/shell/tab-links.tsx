import type { ComponentChildren } from 'preact'

import { may, type User } from '../lib/session.js'

export interface TabLink {
  readonly path: string
  readonly name: string
  readonly role: User['role']
}

interface TabLinksProps {
  readonly label: string
  readonly tabs: readonly TabLink[]
  readonly path: string
  /** What stands behind the name of a tab. */
  readonly badge?: (path: string) => ComponentChildren
}

/** The parts of a screen, those that the user may see. */
export const TabLinks = ({ label, tabs, path, badge }: TabLinksProps) => (
  <nav class="tabs" aria-label={label}>
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
