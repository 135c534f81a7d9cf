import { OptionalKind, type TSchema } from '@sinclair/typebox'

type Node = Readonly<Record<string, unknown>>

const UUID = '3f1c9a52-7f0e-4a51-9a7e-2f6f0b8f4c11'
const HEX_ID = '826b4ca860b38a20'

/** Candidates for schemas with a pattern or format; the first that matches is the example. */
const TEXTS = ['checkout', HEX_ID, 'ik_examp', '2026-11-21', `sha256:${'0f'.repeat(32)}`] as const
const BY_FORMAT: Readonly<Record<string, string>> = {
  uuid: UUID,
  'date-time': '2026-11-21T09:28:19.000Z',
  date: '2026-11-21',
  email: 'ada@example.com',
}
/** Texts without a pattern or format, by the name of their field. */
const BY_NAME: Readonly<Record<string, string>> = {
  access_token: 'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJz…',
  acknowledged_by: UUID,
  actor_id: UUID,
  address: '192.0.2.7',
  alert_ids: UUID,
  anomaly_id: HEX_ID,
  application_id: UUID,
  assignee_id: UUID,
  channel: 'C024BE91L',
  channel_id: UUID,
  collector_url: 'https://logs.example.com',
  created_by: UUID,
  detail: 'the line is not JSON',
  email: 'ann@example.com',
  environment: 'production',
  error: 'ETIMEDOUT',
  events_url: '/api/logs?source=checkout',
  feature: 'severity',
  hosts: 'web-1',
  id: UUID,
  incident_id: UUID,
  ip: '192.0.2.7',
  key: 'ik_C5Sgp6vuuAbk09-6gfq-1b1SD6u3oevjUhKMmjKN',
  key_id: UUID,
  login_url: 'https://logs.example.com/api/auth/oidc/corp',
  model_version: 'ordinal-1.1',
  next_cursor: 'T_4pk7JGCr6h7Q164-_6snsidHNNcyI6MTc5NTY5Nzg2NDIwMiwiaWQiOjQ4ODd9',
  note: 'Ask the payment team.',
  outcome: 'ok',
  owner: 'payment team',
  owner_id: UUID,
  part_of: HEX_ID,
  prefix: 'ik_C5Sgp',
  priority_source: 'auto',
  problem: 'more than 500 groups',
  provider: 'corp',
  q: 'source:checkout severity>=error',
  raw: 'not json',
  reason: 'retried by the client',
  recovery_codes: 'x4k2-9fq7-m3td',
  refresh_token: 'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJz…',
  secret: 'NF5FZ5IX2XIWGIMW2WUM264KBNOHXMMM',
  template: 'payment service timed out after <*> ms',
  template_id: HEX_ID,
  template_text: 'payment service timed out after <*> ms',
  text: 'payment service timed out after <*> ms',
  title: 'Errors of the shop',
  token: 'lat_XlF0FPeXxE7TE_SZJHoIUKlWfngX5B0xSh12fJc5',
  unit: 'ms',
  updated_by: UUID,
  uri: 'otpauth://totp/Log%20Analytics:ann%40example.com?secret=NF5FZ5IX2XIWGIMW2WUM264KBNOHXMMM',
  url: 'https://hooks.example.com/alerts',
  user_agent: 'curl/8.5.0',
  version: '0.1.0',
}
const MAX_DEPTH = 6

/** Builds an example of a schema from its own examples and defaults where it has some. */
export function exampleOf(schema: TSchema, name = '', depth = 0): unknown {
  const node: Node = schema
  const given =
    firstOf(node['examples']) ?? node['default'] ?? node['const'] ?? firstOf(node['enum'])
  if (given !== undefined) return given
  const choice = firstOf(node['anyOf']) ?? firstOf(node['allOf'])
  if (isSchema(choice)) return exampleOf(choice, name, depth)
  return EXAMPLES[String(node['type'])]?.({ node, name, depth: depth + 1 }) ?? null
}

const isSchema = (value: unknown): value is TSchema => typeof value === 'object' && value !== null

const firstOf = (list: unknown): unknown => (Array.isArray(list) ? (list[0] as unknown) : undefined)

interface Asked {
  readonly node: Node
  /** The field whose value is built; '' for none. */
  readonly name: string
  readonly depth: number
}

const EXAMPLES: Readonly<Record<string, (asked: Asked) => unknown>> = {
  object: (asked) => (asked.depth > MAX_DEPTH ? {} : objectExample(asked)),
  array: arrayExample,
  integer: numberExample,
  number: numberExample,
  boolean: () => true,
  string: textExample,
}

function numberExample({ node: { minimum } }: Asked): number {
  return typeof minimum === 'number' ? minimum : 1
}

function objectExample({ node, depth }: Asked): Node {
  const properties = isSchema(node['properties']) ? Object.entries<unknown>(node['properties']) : []
  return Object.fromEntries(
    properties.flatMap(([name, property]) =>
      isSchema(property) && !isReference(property)
        ? [[name, exampleOf(property, name, depth)]]
        : [],
    ),
  )
}

/** Whether a field is optional and refers to something by id, which an example cannot know. */
const isReference = (property: TSchema): boolean =>
  OptionalKind in property && JSON.stringify(property).includes('"format":"uuid"')

function arrayExample({ node, name, depth }: Asked): readonly unknown[] {
  const { items, minItems } = node
  const length = typeof minItems === 'number' && minItems > 1 ? minItems : 1
  if (Array.isArray(items))
    return items.filter(isSchema).map((item) => exampleOf(item, name, depth))
  return isSchema(items) && depth <= MAX_DEPTH
    ? Array.from({ length }, () => exampleOf(items, name, depth))
    : []
}

function textExample({ node: { format, pattern, minLength }, name }: Asked): string {
  const byFormat = BY_FORMAT[String(format)]
  if (byFormat !== undefined) return byFormat
  const fits = (text: string): boolean =>
    (typeof pattern !== 'string' || new RegExp(pattern, 'u').test(text)) &&
    (typeof minLength !== 'number' || text.length >= minLength)
  const named = BY_NAME[name]
  if (named !== undefined && fits(named)) return named
  return TEXTS.find(fits) ?? 'x'.repeat(typeof minLength === 'number' ? minLength : 1)
}
