import { EXCEPTION_NAMES } from '../../model/exceptions.js'
import type { SeverityScale } from '../../model/severity.js'
import type { TimeUnit } from './timestamp.js'

/**
 * The names of each canonical field in loggers, shippers and exports, best first. They are written in compared form:
 * lower case, without `_ - . @` and blanks, so that `log.level`, `log_level` and `{"log":{"level":…}}` are one name.
 *
 * A name with `!` is tried only when no other name of the field has a value, not even in a container. A name with `?`
 * often has other meanings: a value that cannot be read is ignored.
 */
const NAMES = {
  timestamp:
    'timestamp time ts datetime date/time date? eventtime eventcreated timeunixnano observedtimeunixnano ' +
    'timeiso8601 timelocal isodate instant? timemillis starttime? asctime createdat? loggedat? when? ' +
    'realtimetimestamp sourcerealtimetimestamp tsns t? dt? ingestiontime!',
  severity:
    'severitynumber otellogseveritynumber severity severitytext otellogseveritytext level lvl loglevel levelname levellevelstr levellevel ' +
    'detectedlevel status? priority? syslogseverityname syslogseverity levelno levelvalue s? type!?',
  message:
    'message msg body bodystringvalue log line raw rawstring text shortmessage event content ' +
    'textpayload jsonpayloadmessage request! data! errmessage! errormessage! exceptionmessage! fullmessage!',
  host:
    'host hostname hosthostname sysloghostname server node instance computer agenthostname kuberneteshost ' +
    'k8snodename beathostname containername!',
  source:
    'servicename service app application appname program syslogidentifier name component source ' +
    'ddsource sourcetype job tag systemdunit loggroup logstream containername kuberneteslabelsapp ' +
    'kuberneteslabelsappkubernetesio/name kuberneteslabelsk8sapp kubernetescontainername ' +
    'k8scontainername resourcelabelsservicename resourcelabelscontainername labelsapp!',
  path: 'logfilepath file filename logfile',
  logger: 'logger loglogger loggername categoryname sourcecontext name',
  traceId:
    'traceid traceparent ddtraceid oteltraceid xb3traceid xtraceid logginggoogleapiscom/trace trace ' +
    'mdctraceid contextmaptraceid contexttraceid metatraceid requestid! correlationid!',
  spanId:
    'spanid ddspanid otelspanid xb3spanid traceparent logginggoogleapiscom/spanid mdcspanid ' +
    'contextmapspanid contextspanid metaspanid',
  environment:
    'environment env deploymentenvironmentname deploymentenvironment serviceenvironment ddenv',
  summary: 'summary',
  exception: EXCEPTION_NAMES.join(' '),
  dedupKey: 'dedupkey',
  template: 'logrecordtemplate',
  httpStatus:
    'status statuscode httpstatus httpstatuscode httpresponsestatuscode httprequeststatus responsestatus ' +
    'responsestatuscode responsecode resstatuscode elbstatuscode edgeresponsestatus downstreamstatus scstatus',
  httpMethod:
    'method requestmethod httpmethod httprequestmethod httprequestrequestmethod reqmethod verb ' +
    'clientrequestmethod csmethod',
  url:
    'url uri path requesturi requesturl requestpath httprequestrequesturl requri requrl httpurl httptarget ' +
    'urlfull urloriginal urlpath clientrequesturi csuristem',
  operation: 'eventname protopayloadmethodname operationname',
  target: 'eventsource protopayloadresourcename',
  failure: 'errorcode errormessage protopayloadstatusmessage',
} as const satisfies Record<string, string>

export type Field = keyof typeof NAMES

export const FIELDS: readonly Field[] = fields()

const UNITS: ReadonlyMap<string, TimeUnit> = new Map([
  ['timeunixnano', 'ns'],
  ['observedtimeunixnano', 'ns'],
  ['tsns', 'ns'],
  ['timemillis', 'ms'],
  ['realtimetimestamp', 'us'],
  ['sourcerealtimetimestamp', 'us'],
])

const SCALES: ReadonlyMap<string, SeverityScale | 'none'> = new Map([
  ['severitynumber', 'otel'],
  // The name in the OpenTelemetry Collector's exporter for Splunk.
  ['otellogseveritynumber', 'otel'],
  ['priority', 'syslog'],
  ['syslogseverity', 'syslog'],
  ['levelno', 'python'],
  ['levelvalue', 'logback'],
  ['levellevel', 'logback'],
  // Numbers under these names are HTTP codes and kinds, never levels.
  ['status', 'none'],
  ['type', 'none'],
])

export interface Alias {
  readonly field: Field
  /** Index of the field in FIELDS. */
  readonly fieldIndex: number
  /** In compared form. */
  readonly name: string
  /** Position among the names of its field; those of names with `!` start at LAST_RANK. */
  readonly rank: number
  readonly weak: boolean
  /** Whether it is tried only when no other name of the field has a value. */
  readonly isLast: boolean
  readonly unit: TimeUnit
  /** The unit of a number in this field; `auto` guesses by size, `none` accepts only words. */
  readonly scale: SeverityScale | 'auto' | 'none'
}

const LAST_RANK = 100_000

const ALIASES: ReadonlyMap<string, readonly Alias[]> = indexAliases()

/** @param name in the compared form of `comparedName` */
export const aliasesOf = (name: string): readonly Alias[] => ALIASES.get(name) ?? []

/** Normalises a name: `_SYSTEMD-Unit` and `systemd.unit` are the same one. */
export const comparedName = (key: string): string => key.replace(/[_\-. @]/g, '').toLowerCase()

/**
 * Objects whose members are candidates for fields like those at the top level, in this order, after the top level. The
 * other members become tags under their own names.
 */
const CONTAINERS: ReadonlyMap<string, number> = new Map(
  (
    'log attributes fields event source result contentattributes content resourceattributes ' +
    'resource jsonpayload extra'
  )
    .split(' ')
    .map((name, i) => [name, i + 1]),
)

/** @returns 0 for a name that is no container */
export const containerRank = (name: string): number => CONTAINERS.get(name) ?? 0

/** Whether an object of this name is a container, or another object of tags. */
export const isTagHolder = (name: string): boolean =>
  containerRank(name) > 0 ||
  ['tags', 'labels', 'stream', 'contextmap', 'mdc', 'kuberneteslabels', 'context'].includes(name)

function indexAliases(): Map<string, Alias[]> {
  const index = new Map<string, Alias[]>()
  for (const [fieldIndex, field] of FIELDS.entries()) {
    for (const [i, marked] of NAMES[field].split(' ').entries()) {
      const name = marked.replace(/[!?]/g, '')
      const alias: Alias = {
        field,
        fieldIndex,
        name,
        rank: marked.includes('!') ? LAST_RANK + i : i,
        weak: marked.includes('?'),
        isLast: marked.includes('!'),
        unit: UNITS.get(name) ?? 'auto',
        scale: SCALES.get(name) ?? 'auto',
      }
      index.set(name, [...(index.get(name) ?? []), alias])
    }
  }
  return index
}

function fields(): readonly Field[] {
  const isField = (key: string): key is Field => Object.hasOwn(NAMES, key)
  return Object.keys(NAMES).filter(isField)
}
