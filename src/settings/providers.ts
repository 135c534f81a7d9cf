/** The settings of OpenID Connect providers, at which users log in. */
import { ROLES, isRole, type Role } from '../model/roles.js'
import { fail, type Setting } from './setting.js'

export interface OidcProvider {
  /** The name in paths and in the audit trail. */
  readonly name: string
  /** The text of the button on the login page. */
  readonly title: string
  readonly issuer: string
  readonly clientId: string
  /** Null for a public client. */
  readonly clientSecret: string | null
  readonly scopes: string
  /** The path of the claim whose values `roles` names. */
  readonly roleClaim: string
  readonly roles: Readonly<Record<string, Role>>
  /** The role of users without any of these values; null refuses them. */
  readonly defaultRole: Role | null
  /** Whether a local user with the e-mail that the provider has verified is linked to the provider. */
  readonly linkByEmail: boolean
  readonly sessionHours: number
}

const SETTING = 'OIDC_PROVIDERS'
const MAX_PROVIDERS = 10
const MAX_SESSION_HOURS = 720

export const oidcProviders: Setting<readonly OidcProvider[]> = {
  env: SETTING,
  fallback: '',
  doc: 'providers of OpenID Connect that users log in at, as a JSON list ([Security](security.md#single-sign-on)); secret',
  secret: true,
  parse: (text) => {
    if (text === '') return []
    const list = parseJson(text)
    if (!Array.isArray(list) || list.length === 0 || list.length > MAX_PROVIDERS)
      return fail(SETTING, ` is not a JSON list of 1 to ${MAX_PROVIDERS} providers`)
    const providers = list.map((value: unknown, at) => toProvider(value, `${SETTING}[${at}]`))
    if (new Set(providers.map(({ name }) => name)).size < providers.length)
      return fail(SETTING, ' has two providers of one name')
    return providers
  },
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The error would quote a secret.
    return fail(SETTING, ' is not JSON')
  }
}

type Fields = Readonly<Record<string, unknown>>

const KNOWN = [
  'name',
  'title',
  'issuer',
  'client_id',
  'client_secret',
  'scopes',
  'role_claim',
  'roles',
  'default_role',
  'link_by_email',
  'session_hours',
]

function toProvider(value: unknown, at: string): OidcProvider {
  if (typeof value !== 'object' || value === null) return fail(at, ' is not an object')
  const fields: Fields = { ...value }
  for (const name of Object.keys(fields))
    if (!KNOWN.includes(name)) fail(at, ` has ${name}, which is none of ${KNOWN.join(', ')}`)
  const name = textOf(fields, 'name', at)
  if (!/^[a-z0-9-]{1,32}$/.test(name)) fail(at, '.name is not 1 to 32 of a to z, 0 to 9 and -')
  const secret = fields['client_secret']
  return {
    name,
    title: textOf(fields, 'title', at, name),
    issuer: issuerOf(fields, at),
    clientId: textOf(fields, 'client_id', at),
    clientSecret: secret === undefined ? null : textOf(fields, 'client_secret', at),
    scopes: scopesOf(fields, at),
    roleClaim: textOf(fields, 'role_claim', at, 'groups'),
    ...rolesOf(fields, at),
    linkByEmail: booleanOf(fields, 'link_by_email', at),
    sessionHours: hoursOf(fields, at),
  }
}

function textOf(fields: Fields, name: string, at: string, fallback?: string): string {
  const value = fields[name] ?? fallback
  if (typeof value === 'string' && value !== '' && value.length <= 2_000) return value
  return fail(at, `.${name} is not a text`)
}

function booleanOf(fields: Fields, name: string, at: string): boolean {
  const value = fields[name] ?? false
  return typeof value === 'boolean' ? value : fail(at, `.${name} is neither true nor false`)
}

function issuerOf(fields: Fields, at: string): string {
  const issuer = textOf(fields, 'issuer', at)
  const isUrl = URL.canParse(issuer) && /^https?:$/.test(new URL(issuer).protocol)
  return isUrl ? issuer : fail(at, '.issuer is not an http(s) URL')
}

function scopesOf(fields: Fields, at: string): string {
  const scopes = textOf(fields, 'scopes', at, 'openid email profile')
  return scopes.split(' ').includes('openid') ? scopes : fail(at, '.scopes lacks openid')
}

function rolesOf(fields: Fields, at: string): Pick<OidcProvider, 'roles' | 'defaultRole'> {
  const { roles = {}, default_role: defaultRole = null } = fields
  const isMap = typeof roles === 'object' && roles !== null && !Array.isArray(roles)
  const named = isMap ? Object.entries(roles) : fail(at, '.roles is not an object')
  for (const [value, role] of named)
    if (!isRole(role)) fail(at, `.roles[${value}] is not one of ${ROLES.join(', ')}`)
  if (defaultRole !== null && !isRole(defaultRole))
    return fail(at, `.default_role is not one of ${ROLES.join(', ')}`)
  if (named.length === 0 && defaultRole === null)
    return fail(at, ' lets in nobody: it needs roles or default_role')
  return { roles: Object.fromEntries(named), defaultRole }
}

function hoursOf({ session_hours: hours = 12 }: Fields, at: string): number {
  const isHours =
    Number.isInteger(hours) && Number(hours) >= 1 && Number(hours) <= MAX_SESSION_HOURS
  return isHours ? Number(hours) : fail(at, `.session_hours is not in 1..${MAX_SESSION_HOURS}`)
}
