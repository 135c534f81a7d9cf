import type { Draft } from './draft.js'

const CLOCK = String.raw`\d\d:\d\d:\d\d(?:[.,]\d{1,9})?`
const MONTH = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)'
const ISO = String.raw`\d{4}-\d\d-\d\d[T ]${CLOCK}(?:Z| ?[+-]\d\d:?\d\d| (?:UTC|GMT)\b)?`
const SYSLOG_TIME = String.raw`${MONTH} {1,2}\d{1,2}(?: \d{4})? ${CLOCK}`
/** The times that begin lines in the layouts of loggers. */
const ANY_TIME = [
  ISO,
  String.raw`\[${ISO}\]`,
  String.raw`\d{4}/\d\d/\d\d ${CLOCK}`,
  String.raw`\d\d/\d\d/\d\d ${CLOCK}`,
  String.raw`\d{1,2}[ -]${MONTH}[ -]\d{4} ${CLOCK}`,
  String.raw`${MONTH} \d{1,2}, \d{4} ${CLOCK}(?: [AP]M)?`,
  String.raw`\d{10}\.\d{3,6}(?=\s)`,
].join('|')
/**
 * Levels as columns: upper case, or any case in brackets, because an `Error` within a sentence is part of the message.
 */
const UPPER =
  'TRACE|VERBOSE|DEBUG|DEBUG[1-5]|INFO|INFORMATION|NOTICE|LOG(?=:)|WARN|WARNING|ERR|ERROR|' +
  'SEVERE|FAILURE|CRIT|CRITICAL|FATAL|PANIC|ALERT|EMERG|EMERGENCY|FINE|FINER|FINEST|CONFIG'
const ANY_CASE =
  '[Tt]race|[Vv]erbose|[Dd]ebug|[Ii]nfo|[Ii]nformation|[Nn]otice|[Nn]ote|[Ww]arn|[Ww]arning|' +
  `[Ee]rr|[Ee]rror|[Cc]rit|[Cc]ritical|[Ff]atal|[Pp]anic|[Aa]lert|[Ee]merg|${UPPER}`
const LEVEL = String.raw`(?:\[ ?(?<boxed>${ANY_CASE}) ?\]|(?<level>${UPPER})(?![\w.]))`
/**
 * The text between host and message in syslog lines: a program name, a version or a second word, a
 * process, and on macOS a sender in parentheses. `--` stands for a login without a name.
 */
const PROGRAM = String.raw`(?:(?: ?-- )?(?!(?:CEF|LEEF):|\d{1,2}:\d\d)(?<program>[^\s:[\]]{1,128}(?: [\w.]{1,32}(?=\[\d))?)(?: \d{1,5}(?:\.\d{1,5}){1,3})?(?:\[(?<pid>[^\]\s]{1,32})\](?: \([^)]{1,128}\))?)?: ?)`
/** PostgreSQL's `%m [%p] %q%u@%d `, which Debian has, and other common prefixes. */
const POSTGRES = String.raw`(?<time>${ISO}(?: [A-Z]{3,5})?) \[(?<pid>\d{1,10})(?:-\d{1,10})?\](?::? \[\d{1,10}-\d{1,10}\])?:? (?:(?<user>[^\s@=,]{0,128})@(?<database>[^\s@=,]{0,128}) |user=(?<dbuser>[^\s,]{0,128}),db=(?<dbname>[^\s,]{0,128})(?:,app=(?<app>[^,]{0,128}))?(?:,client=(?<peer>\S{0,255}))? )?`
const CLASS = String.raw`[\w$/-]{1,128}(?:\.[\w$/-]{1,128}){1,16}`

/**
 * The head of a line; the message follows it. The named groups are `time`, `epoch`, `level`,
 * `boxed` (a level in brackets), `mark` (a character that stands for a level), `pri` (syslog
 * priority), `host`, `trace`, `cri` (full or partial line), `client` (put back before the message);
 * every other group becomes a tag.
 */
export interface TextForm {
  readonly pattern: RegExp
  /** Continuation lines are indented to the message, as in journalctl. */
  readonly isAligned?: boolean
  /** Which function reads the parts that an expression cannot; the draft's message is the rest of the line. */
  readonly refine?: 'structured-data' | 'access' | 'layout' | 'proxy' | 'security'
  /** Whether the message is the whole line, so that all of it can be searched. */
  readonly isWhole?: boolean
  /** Whether the line may be the message of a syslog line too. */
  readonly isInner?: boolean
  /** The message may be a line of another form: one of those with `isInner` and JSON, or any. */
  readonly wraps?: 'inner' | 'any'
  /** The group that a record has in common with the lines that belong to it. */
  readonly joinedBy?: string
  /** Whether the line belongs to a record before it, with which it is joined. */
  readonly isDetail?: boolean
  /** Matches lines that belong to the record whatever form they have. */
  readonly follows?: RegExp
}

const form = (pattern: string, more: Omit<TextForm, 'pattern'> = {}): TextForm => ({
  pattern: new RegExp(`^${pattern}`),
  ...more,
})

/** The most specific forms first; each is tried at the beginning of a line only. */
export const TEXT_FORMS: readonly TextForm[] = [
  // <34>1 2026-11-21T09:28:19.000Z host app 123 ID47 [sd] message (RFC 5424)
  form(
    String.raw`<(?<pri>\d{1,3})>1 (?:(?<time>${ISO})|-) (?<host>\S{1,255}) (?<program>\S{1,64}) (?<pid>\S{1,128}) (?<msgid>\S{1,64}) `,
    { refine: 'structured-data', wraps: 'inner' },
  ),
  // <34>Nov 21 09:28:19 host app[123]: message (RFC 3164)
  form(
    String.raw`<(?<pri>\d{1,3})>(?<time>${SYSLOG_TIME}|${ISO})(?: (?<host>\S{0,254}[^\s:])(?= |$))?(?: ${PROGRAM}?|$)`,
    { wraps: 'inner' },
  ),
  form(String.raw`<(?<pri>\d{1,3})>(?!\d)`, { wraps: 'inner' }),
  // Nov 21 09:28:19 host app[123]: message (syslog files, journalctl)
  form(String.raw`(?<time>${SYSLOG_TIME}) (?<host>\S{1,255}) ${PROGRAM}?`, {
    isAligned: true,
    wraps: 'inner',
  }),
  // 2026-11-21T09:28:19.000000000Z stdout F message (CRI)
  form(String.raw`(?<time>${ISO}) (?<stream>stdout|stderr) (?<cri>[FP])(?: |$)`),
  // 2026-11-21T09:28:19+0000 host app[123]: message (journalctl -o short-iso, rsyslog)
  form(
    String.raw`(?<time>\d{4}-\d\d-\d\dT${CLOCK}(?:Z|[+-]\d\d:?\d\d)) (?!(?:${ANY_CASE})\b)(?<host>[\w.:-]{1,255}) (?!(?:${ANY_CASE}):)(?<program>[^\s:[\]]{1,128})(?:\[(?<pid>\d{1,10})\])?: `,
    { isAligned: true, wraps: 'inner' },
  ),
  // 10.0.0.1 - user [21/Nov/2026:09:28:19 +0000] "GET / HTTP/1.1" 200 2 "referrer" "agent": everything but the time
  // stays in the message, so that it can be searched
  form(
    String.raw`(?<client>(?![A-Z]{4,8}:)(?:[^\s"]{1,255}:\d{1,5} )?\S{1,255} \S{1,255} \S{1,255}) \[(?<time>\d\d/${MONTH}/\d{4}[: ]${CLOCK}(?: [+-]\d{4})?)\] (?=")`,
    { refine: 'access', isInner: true },
  ),
  // [2026-11-21T09:28:19.123Z] "GET / HTTP/1.1" 200 … (Envoy)
  form(String.raw`(?<time>\[${ISO}\]) (?="[A-Z-]{1,16} \S)`, { refine: 'access' }),
  // http 2026-11-21T09:28:19.186641Z app/lb/50dc 10.0.0.9:2817 10.0.0.1:80 0.0 0.0 0.0 200 200 34 366 "GET http://a:80/ HTTP/1.1" …
  // (AWS load balancers)
  form(
    String.raw`(?:(?:https?|h2|grpcs?|wss?) )?(?<time>${ISO}) (?<balancer>\S{1,255}) (?<ip>\S{1,64}):\d{1,5} (?<target>\S{1,64}:\d{1,5}|-) (?:[-\d.]{1,16} ){3}(?<status>\d{3}|-) (?<target_status>\d{3}|-) \d{1,15} (?<bytes>\d{1,15}) (?=")`,
    { refine: 'proxy', isWhole: true },
  ),
  // 10.0.1.2:33317 [21/Nov/2026:09:28:18.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- … "GET / HTTP/1.1" (HAProxy)
  form(
    String.raw`(?<ip>\S{1,64}):(?<port>\d{1,5}) \[(?<time>\d\d/${MONTH}/\d{4}:${CLOCK})\] (?<frontend>\S{1,128}) (?<backend>[^\s/]{1,128})/(?<server>\S{1,128}) [-+\d/]{3,64} (?:(?<status>\d{3}|-1) )?\+?(?<bytes>\d{1,15}) `,
    { refine: 'proxy', isWhole: true, isInner: true },
  ),
  // node=web-1 type=SYSCALL msg=audit(1795253299.123:45): arch=c000003e … (auditd)
  form(
    String.raw`(?:node=(?<host>\S{1,255}) )?type=(?<audit_type>[\w[\]]{1,64}) msg=audit\((?<epoch>\d{9,10}\.\d{3}):(?<audit_id>\d{1,20})\): ?`,
    { isWhole: true, isInner: true },
  ),
  // 2026-11-21T09:28:19.123456Z 0 [System] [MY-010116] [Server] message (MySQL)
  form(String.raw`(?<time>${ISO}) {1,8}(?<pid>\d{1,10}) \[(?<mark>System)\] `),
  // CEF:0|vendor|product|version|id|name|severity|… and LEEF:1.0|…
  form(String.raw`(?=(?:CEF:\d|LEEF:\d\.\d)\|)`, {
    refine: 'security',
    isWhole: true,
    isInner: true,
  }),
  // 1:M 21 Nov 2026 09:28:19.123 * message (Redis)
  form(
    String.raw`(?<pid>\d{1,10}):(?<role>[XCSM]) (?<time>\d{1,2} ${MONTH} \d{4} ${CLOCK}) (?<mark>[-.*#]) `,
  ),
  // 2026-11-21 09:28:19.123 UTC [1234] shop@orders ERROR:  message (PostgreSQL), and the lines that explain it
  form(`${POSTGRES}(?<level>DEBUG[1-5]|INFO|NOTICE|WARNING|ERROR|LOG|FATAL|PANIC): +`, {
    joinedBy: 'pid',
  }),
  form(`${POSTGRES}(?=(?:DETAIL|HINT|STATEMENT|CONTEXT|QUERY|LOCATION): )`, {
    joinedBy: 'pid',
    isDetail: true,
  }),
  // Start-Date: 2026-11-21  09:28:19 (apt), and the lines to its End-Date
  form(String.raw`Start-Date: (?<time>\d{4}-\d\d-\d\d {1,2}${CLOCK})$`, {
    follows: /^[A-Z][A-Za-z-]{1,31}: /,
  }),
  // npm ERR! code E404
  form(
    String.raw`npm (?<mark>ERR!|error|WARN|warn|notice|http|info|verbose|verb|silly|sill|timing) +`,
  ),
  // 2026/11/21 09:28:19 [notice] 17848#17848: message (nginx)
  form(
    String.raw`(?<time>\d{4}/\d\d/\d\d ${CLOCK}) \[(?<level>[a-z]{3,6})\] (?<pid>\d{1,10})#(?<tid>\d{1,20}): `,
  ),
  // [Sat Nov 21 09:28:19.123456 2026] [core:error] [pid 1:tid 2] message (Apache)
  form(
    String.raw`(?<time>\[\w{3} ${MONTH} [ \d]\d ${CLOCK} \d{4}\]) \[(?:(?<module>\w{0,32}):)?(?<level>[a-z]{3,6}\d?)\] (?:\[pid (?<pid>\d{1,10})(?::tid (?<tid>\d{1,20}))?\] )?`,
  ),
  // E1121 09:28:19.000000   123 file.go:12] message (klog, glog)
  form(
    String.raw`(?<level>[IWEFD])(?<time>\d{4} \d\d:\d\d:\d\d\.\d{1,9}) +(?<pid>\d{1,10}) (?<caller>[^\s:\]]{1,255}:\d{1,7})\] `,
  ),
  // - 1117838570 2005.06.03 node 2005-06-03-15.42.50.675872 node RAS KERNEL INFO message (BGL)
  form(
    String.raw`(?<alert>-|[A-Z]{1,16}) (?<epoch>\d{10}) \d{4}\.\d\d\.\d\d (?<host>\S{1,64}) \d{4}-\d\d-\d\d-\d\d\.\d\d\.\d\d(?<fraction>\.\d{1,9}) \S{1,64} (?<facility>\S{1,32}) (?<component>\S{1,32}) (?<level>[A-Z]{3,11}) `,
  ),
  // - 1131566461 2005.11.09 dn228 Nov 9 12:01:01 dn228/dn228 crond[2915]: message (Thunderbird)
  form(
    String.raw`(?<alert>-|[A-Z_]{1,16}) (?<epoch>\d{10}) \d{4}\.\d\d\.\d\d (?<host>\S{1,64}) ${SYSLOG_TIME} \S{1,128} ${PROGRAM}?`,
  ),
  // 11-21 09:28:19.000  1702  2395 D WindowManager: message (Android)
  form(
    String.raw`(?<time>\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) +(?<pid>\d{1,10}) +(?<tid>\d{1,10}) (?<level>[VDIWEFA]) (?<logger>[^\s:]{1,128}) *: `,
  ),
  // 134681 node-246 unix.hw state_change.unavailable 1077804742 1 message (HPC)
  form(
    String.raw`\d{1,10} (?<host>\S{1,64}) (?<component>\S{1,64}) (?<state>\S{1,64}) (?<epoch>\d{9,10}) (?<flag>\d) `,
  ),
  // 20171223-22:15:29:606|Step_LSC|30002312|message (HealthApp)
  form(
    String.raw`(?<time>\d{8}-\d{1,2}:\d{1,2}:\d{1,2}:\d{1,3})\|(?<component>[^|]{1,128})\|(?<pid>\d{1,20})\|`,
  ),
  // [10.30 16:49:06] chrome.exe - message (Proxifier)
  form(String.raw`\[(?<time>\d\d\.\d\d \d\d:\d\d:\d\d)\] (?<program>\S{1,128}(?: \*\d\d)?) - `),
  // 2016-09-28 04:30:30, Info                  CBS    message (Windows)
  form(String.raw`(?<time>${ISO}), (?<boxed>${ANY_CASE}) +(?<component>[A-Z]{2,16}) +`),
  // 17/06/09 20:10:40 INFO executor.Executor: message (Spark)
  form(String.raw`(?<time>\d\d/\d\d/\d\d ${CLOCK}) (?<level>${UPPER}) (?<logger>[^\s:]{1,255}): `),
  // 081109 203615 148 INFO dfs.DataNode$PacketResponder: message (HDFS)
  form(
    String.raw`(?<time>\d{6} \d{6}) (?<pid>\d{1,10}) (?<level>${UPPER}) (?<logger>[^\s:]{1,255}): `,
  ),
  // nova-api.log.1 2026-11-21 09:28:19.000 25746 INFO nova.x [req-… user project - - -] message
  form(
    String.raw`(?:(?<file>\S{1,128}\.log\S{0,64}) )?(?<time>${ISO}) (?<pid>\d{1,10}) (?<level>${UPPER}) (?<logger>[\w.]{1,128}) \[(?:(?<trace>req-[\w-]{1,64})(?: [^\]]{0,256})?|-)\] ?`,
  ),
  // [2026-11-21 09:28:19] production.ERROR: message {"exception":"… (Monolog of Laravel and Symfony), and its stack
  form(
    String.raw`(?<time>\[${ISO}\]) (?<channel>[\w-]{1,64})\.(?<level>DEBUG|INFO|NOTICE|WARNING|ERROR|CRITICAL|ALERT|EMERGENCY): `,
    { follows: /^(?:\[previous exception\]|"\})/ },
  ),
  // [21-Nov-2026 09:28:19 UTC] PHP Warning:  message, [21-Nov-2026 09:28:19] NOTICE: message (PHP, PHP-FPM)
  form(
    String.raw`(?<time>\[\d\d-${MONTH}-\d{4} ${CLOCK}(?: UTC)?\]) (?:(?<level>DEBUG|NOTICE|WARNING|ERROR|ALERT): )?`,
  ),
  // E, [2026-11-21T09:28:19.123456 #123] ERROR -- : message (Ruby, Rails)
  form(
    String.raw`[DIWEFA], \[(?<time>${ISO}) #(?<pid>\d{1,10})\] +(?:(?<level>DEBUG|INFO|WARN|ERROR|FATAL)|ANY) -- (?<logger>[^:]{0,128}): `,
  ),
  // Nov 21, 2026 9:28:19 AM com.acme.Checkout run (java.util.logging); the next line has level and message
  form(
    String.raw`(?<time>${MONTH} \d{1,2}, \d{4},? \d{1,2}:\d\d:\d\d[ \u202f][AP]M) (?<logger>[\w.$]{1,255}) (?<method>[\w$<>]{1,128})$`,
    {
      follows:
        /^(?:(?:SEVERE|WARNING|INFO|CONFIG|FINE|FINER|FINEST): |(?:[a-z]\w{0,63}\.){1,16}[A-Z][\w$]{0,127}(?:: |$))/,
    },
  ),
  // [Nest] 123  - 11/21/2026, 9:28:19 AM     LOG [Checkout] message
  form(
    String.raw`\[Nest\] (?<pid>\d{1,10}) +- (?<time>\d\d/\d\d/\d{4}, \d{1,2}:\d\d:\d\d[ \u202f][AP]M) +(?<level>LOG|ERROR|WARN|DEBUG|VERBOSE|FATAL) (?:\[(?<logger>[^\]]{1,128})\] )?`,
  ),
  // fail: Acme.Checkout[13], and the indented message below it (.NET)
  form(
    String.raw`(?<level>dbug|info|warn|fail|crit): (?<logger>[\w.+\x60]{1,255})\[(?<event_id>\d{1,10})\]$`,
  ),
  // [2026-11-21T09:28:19Z WARN  acme::checkout] message (Rust)
  form(
    String.raw`\[(?<time>${ISO}) (?<level>ERROR|WARN|INFO|DEBUG|TRACE) +(?<logger>[\w:]{1,255})\] `,
  ),
  // update-alternatives 2026-11-21 09:28:19: message
  form(String.raw`(?<program>update-alternatives) (?<time>${ISO}): `),
  // ERROR [main] 2026-11-21 09:28:19,000 Checkout.java:803 - message: level, perhaps thread, time
  form(
    String.raw`(?<level>${UPPER}) {1,8}(?:\[(?<thread>[^\]]{1,128})\] )?(?<time>${ISO}) +(?=\S)`,
    { refine: 'layout' },
  ),
  // … INFO [thread] logger - message, in the orders that the layouts of loggers have
  form(
    String.raw`(?<time>${ANY_TIME}) {0,8}(?:[-|] )?(?:\[?(?<pid>\d{1,10})\]? )?${LEVEL}(?: ?[|:])? *`,
    { refine: 'layout' },
  ),
  form(String.raw`(?<time>${ANY_TIME}) {1,8}\[(?<thread>[^\]]{1,128})\] ${LEVEL}(?: ?[|:])? *`, {
    refine: 'layout',
  }),
  form(String.raw`(?<time>${ANY_TIME}) - (?<logger>[\w.]{1,128}) - ${LEVEL} - `),
  form(String.raw`(?<time>${ANY_TIME})(?:: | - |[ \t]+)(?=\S)`),
  // 09:28:19.000 [main] INFO com.acme.Checkout - message (logback's default): a time without a day
  form(String.raw`\d\d:\d\d:\d\d[.,]\d{3} \[(?<thread>[^\]]{1,128})\] ${LEVEL} *`, {
    refine: 'layout',
  }),
  // ERROR:app.views:message (Python's default)
  form(String.raw`(?<level>DEBUG|INFO|WARNING|ERROR|CRITICAL):(?<logger>[\w.]{1,128}):`, {
    wraps: 'any',
  }),
]

/** <34>checkout[123]: message, as Python sends it: without time and host. */
const WITHOUT_TIME = form(
  String.raw`<(?<pri>\d{1,3})>(?!(?:${ANY_CASE}|CEF|LEEF):)(?<program>[A-Za-z][\w./-]{0,47})(?:\[(?<pid>[^\]\s]{1,32})\])?: `,
  { wraps: 'inner' },
)

/** %SYS-5-CONFIG_I: what a message of Cisco's devices begins with. */
const MNEMONIC = String.raw`(?=%[A-Z\d_]{1,64}(?:-[A-Z\d_]{1,64}){0,4}-[0-7]-[A-Z\d_]{1,64} ?:)`
/** The number of the message, the device, and a number by another counter. */
const DEVICE = String.raw`(?:(?<sequence>\d{1,10})?: )?(?:(?<host>[A-Za-z][\w.-]{0,254}) ?: )?(?:(?<counter>\d{1,10}): )?`
const DEVICE_TIME = String.raw`(?:${SYSLOG_TIME}|\d{4} ${MONTH} {1,2}\d{1,2} ${CLOCK}|${ISO})(?: [A-Z]{3,4})?`

/**
 * Messages of Cisco's devices: as a relay forwards them, with a valid time of their own, or with a
 * time to be ignored. That is the time of a clock that was never set, marked by an asterisk, or the
 * time since the start.
 */
const CISCO_FORMS: readonly TextForm[] = [
  // <187>Nov 21 09:28:19 10.0.0.1 123: sw-1: *Mar  1 18:46:11.123: %LINK-3-UPDOWN: message
  form(
    String.raw`<(?<pri>\d{1,3})>(?<time>${SYSLOG_TIME}|${ISO}) (?<host>\S{0,254}[^\s:]) (?:(?<sequence>\d{1,10})?: )?(?:[A-Za-z][\w.-]{0,254}: )?(?:(?<counter>\d{1,10}): )?(?:[*.]?${DEVICE_TIME}: )?${MNEMONIC}`,
  ),
  // <189>123: sw-1: 000124: .Nov 21 09:28:19.123 UTC: %SYS-5-CONFIG_I: message
  form(String.raw`<(?<pri>\d{1,3})>${DEVICE}\.?(?<time>${DEVICE_TIME}): ${MNEMONIC}`),
  form(String.raw`<(?<pri>\d{1,3})>${DEVICE}(?:\*?[\w .:]{1,40}: )?${MNEMONIC}`),
]

/** The forms of a message that begins with `<PRI>`. */
export const SYSLOG_FORMS: readonly TextForm[] = [
  ...CISCO_FORMS,
  ...TEXT_FORMS.slice(0, 2),
  WITHOUT_TIME,
  ...TEXT_FORMS.slice(2, 3),
]

/** The forms that the message of a syslog line may have. */
export const INNER_FORMS: readonly TextForm[] = TEXT_FORMS.filter(({ isInner }) => isInner === true)

/** 12 verbose stack Error: …, in npm's debug logs: the lines of one number are a record. */
export const NPM_FORMS: readonly TextForm[] = [
  form(String.raw`(?<seq>\d{1,9}) (?<mark>silly|verbose|info|timing|http|notice|warn|error) ?`, {
    joinedBy: 'seq',
    isDetail: true,
  }),
]

/** The levels of the characters by which Redis and npm mark them. */
export const MARKS: Readonly<Partial<Record<string, string>>> = {
  '.': 'debug',
  '-': 'verbose',
  '*': 'notice',
  '#': 'warning',
  'ERR!': 'error',
  // MySQL starts, stops, or is ready.
  System: 'info',
  verb: 'verbose',
  sill: 'silly',
  timing: 'info',
}

/** The parts of layouts between level and message. */
const LAYOUT_TAILS: readonly RegExp[] = [
  // 123 --- [app] [main] com.acme.Checkout : (Spring Boot)
  String.raw`(?<pid>\d{1,10}) --- (?:\[[^\]]{0,128}\] )?\[ {0,64}(?<thread>[^\] ][^\]]{0,127})\] (?<logger>[^\s:]{1,255}) {0,64}: `,
  // [main] com.acme.Checkout - or [QuorumPeer[myid=1]/…] -
  String.raw`(?:- )?\[(?<thread>[^[\]]{1,256}(?:\[[^[\]]{0,64}\][^[\]]{0,256})?)\] (?:(?<logger>[\w$./:-]{1,255}) )?- `,
  String.raw`\[(?<thread>[^[\]]{1,256})\] (?<logger>${CLASS}(?::\d{1,7})?)(?: -|:) `,
  // com.acme.Checkout: or com.acme.Checkout -
  String.raw`(?<logger>${CLASS}(?::\d{1,7})?)(?: \[-\])?(?: -|:) `,
  String.raw`(?<logger>[\w$./:-]{1,255}) - `,
  String.raw`- `,
].map((tail) => new RegExp(`^${tail}`))

/** Moves thread and logger from the message of a draft to its tags. */
export function refineLayout(draft: Draft, addTag: (name: string, value: string) => void): void {
  for (const tail of LAYOUT_TAILS) {
    const match = tail.exec(draft.message)
    if (match === null) continue
    for (const [name, value] of Object.entries(match.groups ?? {})) {
      if (value !== undefined) addTag(name, value.trim())
    }
    draft.message = draft.message.slice(match[0].length)
    return
  }
}
