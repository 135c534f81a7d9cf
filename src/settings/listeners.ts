/** The settings of the ports for shippers that speak other protocols than HTTP. */
import { fail, ranges, secret, textSetting, type Setting } from './setting.js'

/** A port that is closed unless it is set. */
const port = (env: string, doc: string): Setting<number | null> => ({
  env,
  fallback: '',
  doc: `${doc}; unset = closed, 0 = any`,
  secret: false,
  parse: (value) => {
    if (value === '') return null
    const n = /^\d{1,5}$/.test(value) ? Number(value) : Number.NaN
    return n <= 65_535 ? n : fail(env, `=${value} is not an integer in 0..65535`)
  },
})

export const LISTENER_SETTINGS = {
  otlpGrpcPort: port('OTLP_GRPC_PORT', 'OTLP over gRPC, with TLS too when TLS_CERT_FILE is set'),
  syslogPort: port('SYSLOG_PORT', 'syslog over TCP and UDP'),
  syslogTlsPort: port('SYSLOG_TLS_PORT', 'syslog over TLS'),
  tlsCertFile: textSetting(
    'TLS_CERT_FILE',
    '',
    'PEM file with the certificate chain of SYSLOG_TLS_PORT and OTLP_GRPC_PORT; read again when it was renewed',
  ),
  tlsKeyFile: textSetting('TLS_KEY_FILE', '', 'PEM file with its private key'),
  gelfPort: port('GELF_PORT', 'GELF over TCP and UDP'),
  fluentPort: port('FLUENT_PORT', 'the Forward protocol of Fluentd, Fluent Bit and Docker'),
  fluentSharedKey: secret('FLUENT_SHARED_KEY', 8, 'key that clients of FLUENT_PORT must know'),
  linesPort: port('LINES_PORT', 'JSON lines over TCP'),
  listenerAllow: ranges(
    'LISTENER_ALLOW',
    'addresses and CIDR ranges that may use the ports without keys; needed when HOST is not the loopback',
  ),
} as const satisfies Record<string, Setting<unknown>>

type ListenerConfig = {
  readonly [Name in keyof typeof LISTENER_SETTINGS]: ReturnType<
    (typeof LISTENER_SETTINGS)[Name]['parse']
  >
}

export interface Ports extends ListenerConfig {
  readonly role: 'all' | 'api' | 'collector'
  readonly host: string
  readonly apiPort: number
  readonly collectorPort: number
}

/** The TCP ports of an instance, by setting; null for one that is closed. */
export function portsOf(config: Ports): ReadonlyMap<string, number | null> {
  const { role } = config
  const ofCollector = [
    ['COLLECTOR_PORT', config.collectorPort],
    ['OTLP_GRPC_PORT', config.otlpGrpcPort],
    ['SYSLOG_PORT', config.syslogPort],
    ['SYSLOG_TLS_PORT', config.syslogTlsPort],
    ['GELF_PORT', config.gelfPort],
    ['FLUENT_PORT', config.fluentPort],
    ['LINES_PORT', config.linesPort],
  ] as const
  return new Map<string, number | null>([
    ...(role === 'collector' ? [] : ([['API_PORT', config.apiPort]] as const)),
    ...(role === 'api' ? [] : ofCollector),
  ])
}

/** Whether only this machine reaches an address. */
const isLoopback = (host: string): boolean => /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/i.test(host)

/** @param refuse reports a problem if there is one */
export function checkListeners(
  config: Ports,
  refuse: (wrong: boolean, problem: string) => void,
): void {
  const taken = new Map<number, string>()
  for (const [setting, number] of portsOf(config)) {
    if (number === null || number === 0) continue
    const other = taken.get(number)
    refuse(
      other !== undefined,
      `${other ?? ''} and ${setting} are both ${number}; they need different ports`,
    )
    taken.set(number, setting)
  }
  const hasCert = config.tlsCertFile !== ''
  const hasKey = config.tlsKeyFile !== ''
  refuse(
    hasCert !== hasKey,
    `${hasCert ? 'TLS_CERT_FILE needs TLS_KEY_FILE' : 'TLS_KEY_FILE needs TLS_CERT_FILE'}: ` +
      'they are the PEM files of a certificate and its key',
  )
  refuse(
    config.syslogTlsPort !== null && !hasCert && !hasKey,
    'SYSLOG_TLS_PORT needs TLS_CERT_FILE and TLS_KEY_FILE, the PEM files of a certificate and its key',
  )
  const open = keylessPorts(config)
  refuse(
    open.length > 0 && !isLoopback(config.host) && config.listenerAllow.length === 0,
    `${open.join(', ')} would take records from anybody who reaches HOST=${config.host}: ` +
      'set LISTENER_ALLOW to the addresses and networks that may send',
  )
}

const KEYLESS: ReadonlySet<string> = new Set([
  'SYSLOG_PORT',
  'SYSLOG_TLS_PORT',
  'GELF_PORT',
  'FLUENT_PORT',
  'LINES_PORT',
])

/** The settings of open ports that need no key. */
function keylessPorts(config: Ports): readonly string[] {
  const isKeyless = (setting: string): boolean =>
    KEYLESS.has(setting) && (setting !== 'FLUENT_PORT' || config.fluentSharedKey === null)
  return [...portsOf(config)]
    .filter(([setting, number]) => number !== null && isKeyless(setting))
    .map(([setting]) => setting)
}
