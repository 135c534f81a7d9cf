import type { TabLink } from './tab-links.js'

/* The tabs of screens; the palette finds them by name. */

export const ALERT_TABS: readonly TabLink[] = [
  { path: '/alerts', name: 'Alerts', role: 'viewer' },
  { path: '/alerts/rules', name: 'Rules', role: 'viewer' },
  { path: '/alerts/quiet', name: 'Silences', role: 'viewer', also: 'maintenance windows' },
  { path: '/alerts/channels', name: 'Channels', role: 'manager' },
]

export const SOURCE_TABS: readonly TabLink[] = [
  { path: '/sources', name: 'Sources', role: 'viewer' },
  { path: '/sources/send', name: 'Send logs', role: 'viewer', also: 'upload' },
  { path: '/sources/dead-letters', name: 'Dead letters', role: 'admin' },
  { path: '/sources/keys', name: 'Ingest keys', role: 'admin' },
]

export const ADMIN_TABS: readonly TabLink[] = [
  { path: '/admin', name: 'Health', role: 'viewer' },
  { path: '/admin/storage', name: 'Storage', role: 'viewer', also: 'retention, disk' },
  { path: '/admin/sessions', name: 'Your sessions', role: 'viewer', also: 'second factor' },
  { path: '/admin/users', name: 'Users', role: 'admin', also: 'roles' },
  { path: '/admin/tokens', name: 'API tokens', role: 'admin' },
  { path: '/admin/audit', name: 'Audit', role: 'admin' },
]
