import type { Draft } from './draft.js'
import { severityOfHttpStatus } from './record-fields.js'
import type { TagCollector } from './tags.js'
import { parseTimestamp } from './timestamp.js'
import type { Clock } from './zone.js'

/** `"GET /cart?id=7 HTTP/1.1" 200 512 "referrer" "agent"`; servers escape quotes within. */
const COMBINED =
  /^"((?:[^"\\]|\\.){0,8192})" (\d{3})(?: (\d{1,15}|-))?(?: "((?:[^"\\]|\\.){0,8192})" "((?:[^"\\]|\\.){0,8192})")?/

/** Reads the request, the status and what follows them from the message of an access log. */
export function refineAccess(draft: Draft, tags: TagCollector, client: string): void {
  const match = COMBINED.exec(draft.message)
  if (client !== '') {
    draft.message = `${client} ${draft.message}`
    const [ip = '', , user = ''] = client.split(' ').slice(-3)
    tags.add('ip', ip)
    tags.add('user', given(user))
  }
  if (match === null) return
  const [, request = '', status = '', bytes = '-', referrer, agent] = match
  addRequest(request, tags)
  addStatus(status, draft, tags)
  if (bytes !== '-') tags.add('bytes', Number(bytes))
  tags.add('referrer', given(referrer))
  tags.add('agent', given(agent))
}

/** Reads a line of a proxy or load balancer, whose request is the first text in quotes. The message is the whole line. */
export function refineProxy(draft: Draft, tags: TagCollector, status: string): void {
  const [, request = ''] = /"([^"]{1,8192})"/.exec(draft.message) ?? []
  addRequest(request, tags)
  addStatus(status, draft, tags)
}

function addRequest(request: string, tags: TagCollector): void {
  const [, method = '', target = ''] = /^([A-Z][A-Z-]{1,15}) (\S{1,8192})/.exec(request) ?? []
  tags.add('method', method)
  tags.add('path', target.replace(/^https?:\/\/[^/]{0,512}/, ''))
}

function addStatus(status: string, draft: Draft, tags: TagCollector): void {
  const severity = severityOfHttpStatus(status)
  if (severity === null) return
  draft.severity = severity
  tags.add('status', Number(status))
}

/** A lone dash stands for a missing value. */
const given = (value: string | undefined): string =>
  value === undefined || value === '-' ? '' : value

/** The names that the fields of the W3C have in other access logs. */
const W3C_TAGS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'c-ip': 'ip',
    'cs-username': 'user',
    'cs-method': 'method',
    'cs-uri-stem': 'path',
    'sc-status': 'status',
    'sc-bytes': 'bytes',
    'cs(Referer)': 'referrer',
    'cs(User-Agent)': 'agent',
  }),
)

/** The fields of a W3C log, by the line `#Fields:` before its rows. */
export class W3cFields {
  readonly #names: readonly string[]
  readonly #separator: string

  /** @param line without its line end */
  constructor(line: string) {
    const names = line.slice(line.indexOf(':') + 1).trim()
    this.#separator = names.includes('\t') ? '\t' : ' '
    this.#names = names.split(this.#separator)
  }

  /** Reads a row, whose times are in UTC. @returns false when it has not these fields */
  read(
    line: string,
    draft: Draft,
    at: { readonly tags: TagCollector; readonly clock: Clock },
  ): boolean {
    const cells = line.split(this.#separator)
    if (cells.length !== this.#names.length) return false
    const of = (name: string): string => given(cells[this.#names.indexOf(name)])
    const time = `${of('date')} ${of('time')}`.trim()
    draft.timestampMs = time === '' ? null : parseTimestamp(`${time}Z`, at.clock)
    draft.host = of('s-computername')
    draft.severity = severityOfHttpStatus(of('sc-status'))
    draft.message = cells.filter((_, i) => !/^(?:date|time)$/.test(this.#names[i] ?? '')).join(' ')
    this.#names.forEach((name, i) => {
      const value = given(cells[i])
      const isNumber = (name === 'sc-status' || name === 'sc-bytes') && /^\d{1,15}$/.test(value)
      if (name !== 'date' && name !== 'time')
        at.tags.add(W3C_TAGS.get(name) ?? name, isNumber ? Number(value) : value)
    })
    return true
  }
}
