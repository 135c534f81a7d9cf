import type { IconName } from '../lib/icon-names.js'

/** A screen in the navigation rail. */
export interface ScreenLink {
  readonly path: string
  readonly name: string
  readonly icon: IconName
  /** The second key of its shortcut, after `g`. */
  readonly key: string
}

export const SCREENS: readonly ScreenLink[] = [
  { path: '/explore', name: 'Explore', icon: 'search', key: 'e' },
  { path: '/live', name: 'Live', icon: 'activity', key: 'l' },
  { path: '/templates', name: 'Templates', icon: 'blocks', key: 't' },
  { path: '/overview', name: 'Overview', icon: 'gauge', key: 'o' },
  { path: '/alerts', name: 'Alerts', icon: 'bell', key: 'a' },
  { path: '/incidents', name: 'Incidents', icon: 'flame', key: 'i' },
  { path: '/insights', name: 'Insights', icon: 'lightbulb', key: 'n' },
  { path: '/sources', name: 'Sources', icon: 'database', key: 's' },
  { path: '/admin', name: 'Admin', icon: 'settings', key: 'd' },
]
