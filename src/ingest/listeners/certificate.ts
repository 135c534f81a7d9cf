import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'

import type { Config } from '../../config.js'
import { SECOND_MS } from '../../model/time.js'
import type { Log } from '../../telemetry/log.js'

interface CertificateFiles {
  readonly cert: Buffer
  readonly key: Buffer
}

/** The certificate of the TLS ports. After a renewal of its files, new connections get the new one. */
export interface Certificate {
  readonly current: () => CertificateFiles
  onRenewed(listener: (files: CertificateFiles) => void): void
  close(): void
}

/** How often the files are read. File system events would miss a change of a symbolic link's target. */
const REREAD_MS = 10 * SECOND_MS

/**
 * Reads the certificate and its key, and reads them again from time to time. If they do not
 * match, as for a moment during a replacement, this is logged once and the former ones stay in use.
 *
 * @throws Error naming the setting of a file that cannot be used
 */
export function openCertificate(config: Config, log: Log, lookMs = REREAD_MS): Certificate {
  let files = readFiles(config)
  let told = ''
  const listeners: ((files: CertificateFiles) => void)[] = []
  checkPair(files)
  warnUnlessValid(files, log)
  const look = (): void => {
    try {
      const now = readFiles(config)
      if (now.cert.equals(files.cert) && now.key.equals(files.key)) return
      checkPair(now)
      files = now
      told = ''
      for (const listener of listeners) listener(files)
      const { validTo } = new X509Certificate(files.cert)
      log.info({ validTo }, 'TLS_CERT_FILE was renewed; new connections have the new certificate')
      warnUnlessValid(files, log)
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error)
      if (problem !== told) log.warn({}, `${problem}; the former certificate stays in use`)
      told = problem
    }
  }
  const timer = setInterval(look, lookMs).unref()
  return {
    current: () => files,
    onRenewed: (listener) => void listeners.push(listener),
    close: () => clearInterval(timer),
  }
}

function readFiles({ tlsCertFile, tlsKeyFile }: Config): CertificateFiles {
  const read = (setting: string, path: string): Buffer => {
    try {
      return readFileSync(path)
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw new Error(`${setting}=${path} can't be read: ${reason}`, { cause })
    }
  }
  return { cert: read('TLS_CERT_FILE', tlsCertFile), key: read('TLS_KEY_FILE', tlsKeyFile) }
}

function checkPair(files: CertificateFiles): void {
  try {
    createSecureContext(files)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`TLS_CERT_FILE and TLS_KEY_FILE are no certificate and its key: ${reason}`, {
      cause,
    })
  }
}

/** Warns of a certificate that is not valid now. Clients that do not check it still connect. */
function warnUnlessValid({ cert }: CertificateFiles, log: Log): void {
  const { validFrom, validTo } = new X509Certificate(cert)
  const isValid = Date.parse(validFrom) <= Date.now() && Date.now() < Date.parse(validTo)
  if (!isValid) log.warn({ validFrom, validTo }, 'the certificate of TLS_CERT_FILE is not valid')
}
