import { Counter, type Registry } from 'prom-client'

const KINDS = [
  'password',
  'second_factor',
  'ingest_key',
  'webhook_signature',
  'api_token',
  'refresh_token',
] as const
export type Credential = (typeof KINDS)[number]

/** @returns a function that counts a credential that was wrong or used a second time */
export function countRefusedCredentials(registry: Registry): (kind: Credential) => void {
  const refused = new Counter({
    name: 'log_engine_credentials_refused_total',
    help: `Credentials that were wrong or used a second time: ${KINDS.join(', ')}`,
    labelNames: ['kind'],
    registers: [registry],
  })
  // Prometheus sees no increase from nothing to the first value, which may be a thousand guesses.
  for (const kind of KINDS) refused.inc({ kind }, 0)
  return (kind) => refused.inc({ kind })
}
