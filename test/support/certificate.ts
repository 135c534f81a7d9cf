import { join } from 'node:path'
import { runTool } from './tools.js'

export interface Certificate {
  /** PEM files. */
  readonly cert: string
  readonly key: string
}

/** Makes a self-signed certificate of 127.0.0.1 and localhost. @throws Error where openssl is not installed */
export function certificateIn(dir: string): Certificate {
  const [cert, key] = [join(dir, 'cert.pem'), join(dir, 'key.pem')]
  const kind =
    '-x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1'
  const { code, text } = runTool('openssl', [
    'req',
    ...kind.split(' '),
    '-keyout',
    key,
    '-out',
    cert,
  ])
  if (code !== 0) throw new Error(text)
  return { cert, key }
}
