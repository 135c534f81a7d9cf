/** The roles in ascending order: each has all rights of the one before it. */
export const ROLES = ['viewer', 'manager', 'admin', 'superadmin'] as const
export type Role = (typeof ROLES)[number]

export const isRole = (value: unknown): value is Role => ROLES.some((role) => role === value)

export const isAtLeast = (role: Role, needed: Role): boolean =>
  ROLES.indexOf(role) >= ROLES.indexOf(needed)
