import { lstatSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { ADMIN, INGEST_KEY } from './service.js'

/** The secrets of a service. */
export const SECRETS: Record<string, string> = {
  JWT_SECRET: 'jwt secret & "quotes" \\ with 32 characters',
  ADMIN_PASSWORD: ADMIN.password,
  INGEST_KEY,
  METRICS_TOKEN: 'metrics/token+for=this.test',
  WEBHOOK_SECRET: 'webhook/secret+for "this" test',
  WEBHOOK_SECRET_PREVIOUS: 'the/older webhook+secret',
}

/** A secret in every encoding. */
function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret)
  // Within other bytes the base64 of a text has three forms.
  const base64 = [0, 1, 2].flatMap((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), bytes])
      .toString('base64')
      .replaceAll('=', '')
    const inner = text.slice(shift === 0 ? 0 : shift + 1, -2)
    return [inner, inner.replaceAll('+', '-').replaceAll('/', '_')]
  })
  const json = JSON.stringify(secret).slice(1, -1)
  const twice = JSON.stringify(json).slice(1, -1)
  const encoded = encodeURIComponent(secret)
  return [
    ...new Set([
      secret,
      json,
      twice,
      encoded,
      encoded.replaceAll('%20', '+'),
      bytes.toString('hex'),
      ...base64,
    ]),
  ]
}

/** The texts to search, by their place. */
export const said = new Map<string, string>()

export function findIn(secrets: Readonly<Record<string, string>>): string[] {
  return [...said].flatMap(([where, text]) =>
    Object.entries(secrets)
      .filter(([, secret]) => formsOf(secret).some((form) => text.includes(form)))
      .map(([name]) => `${name} in ${where}`),
  )
}

/** The bytes of every file below a directory, as latin1 text. */
export function readAll(dir: string): string {
  const names = readdirSync(dir, { recursive: true, encoding: 'utf8' })
  const files = names.filter((name) => lstatSync(join(dir, name)).isFile())
  return files.map((name) => readFileSync(join(dir, name), 'latin1')).join('\n')
}
