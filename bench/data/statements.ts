import { Random } from './random.js'

/*
 * Logs of made-up services in the style of common loggers, with their log statements as the ground
 * truth. A hole is `{kind}`; values are drawn by kind. The miner's rules were not tuned on them.
 */

const NAMES =
  'billing search catalog-api mail_queue ingest.main shard-a users payments orders_v2 audit frontend cache-warmer reports geo scheduler primary replica-b'.split(
    ' ',
  )
const PHRASES = [
  'connection refused',
  'no such file or directory',
  'context deadline exceeded',
  'unexpected end of input',
  'permission denied',
  'dial tcp 10.2.3.4:443: i/o timeout',
  'the peer closed the stream',
  'bad checksum (expected 17, got 90)',
  'Get "https://10.0.0.9/v1/items?limit=5": EOF',
  'too many open files',
  'quota of "default" used up',
]
const HOLE = /\{([a-z]+)\}/g
const STATES = 'starting ready draining degraded stopped unknown'.split(' ')
const WORDS = 'amber birch cedar delta ember flint grove heron islet jade kelp lotus'.split(' ')

const hex = (random: Random, length: number): string =>
  Array.from({ length }, () => random.below(16).toString(16)).join('')

const KINDS: Readonly<Record<string, (random: Random) => string>> = {
  n: (random) => String(random.below(100_000)),
  id: (random) => `${hex(random, 11)}7`,
  uuid: (random) => [8, 4, 4, 4, 12].map((length) => hex(random, length)).join('-'),
  ip: (random) => `10.${random.below(256)}.${random.below(256)}.${random.below(256)}`,
  addr: (random) => `10.1.${random.below(256)}.${random.below(256)}:${1024 + random.below(60_000)}`,
  host: (random) => `${random.pick(WORDS)}-${random.below(90)}.example.net`,
  path: (random) => `/var/${random.pick(WORDS)}/${random.pick(NAMES)}/${random.below(900)}`,
  name: (random) => random.pick(NAMES),
  word: (random) => random.pick(WORDS),
  state: (random) => random.pick(STATES),
  err: (random) => random.pick(PHRASES),
  dur: (random) => `${random.below(9000) / 10}ms`,
  url: (random) => `http://10.2.0.${random.below(256)}:2380/${random.pick(WORDS)}`,
  mail: (random) => `${random.pick(WORDS)}@${random.pick(NAMES)}.example.com`,
  bool: (random) => (random.below(2) === 0 ? 'true' : 'false'),
  class: (random) => `org.example.${random.pick(WORDS)}.Handler`,
  /** Text that no pool holds: every value is new. */
  free: (random) =>
    Array.from({ length: 2 + random.below(4) }, () => freshWord(random)).join(' '),
}

function freshWord(random: Random): string {
  const syllables = 'ba de fi go hu ka le mi no pu ra se ti vo zu'.split(' ')
  return Array.from({ length: 3 + random.below(3) }, () => random.pick(syllables)).join('')
}

/** Kinds of which every value may be a new one. */
const WORDY = new Set(['name', 'word', 'state', 'err', 'free'])
const fresh = (random: Random, kind: string): string =>
  kind === 'err' || kind === 'free' ? (KINDS['free']?.(random) ?? '') : freshWord(random)

/** The log statements of each service. */
export const SERVICES: Readonly<Record<string, readonly string[]>> = {
  /** Sentences followed by `key=value`. */
  gateway: [
    'Route table was rebuilt. routes={n} took={dur}',
    'Upstream answered late. upstream={name} error={err} attempt={n}',
    'Request could not be forwarded. upstream={name} error="{err}" stage="connect"',
    'Body of the request is larger than allowed. limit={n} client={addr}',
    'Configuration file was read. path="{path}" checks={n}',
    'Certificate will expire soon. name="{host}" days={n}',
    'Listener is ready. address={addr} tls={bool}',
    'Health of an upstream changed. upstream={name} before={state} now={state}',
    'Token was refused. reason="{err}" realm="{name}"',
    'Retrying after a failed handshake. error={err}',
    'Rate limit is in effect. key={name} burst={n}',
    'Dropped a response header that is not allowed. header="{word}"',
    'Shutting down, waiting for open requests. open={n}',
    'All workers left the pool.',
    'Connection pool grew. upstream={name} size={n}',
    'Access rule was changed by an operator. rule={name} user="{mail}"',
    'Plugin returned an error. plugin="{name}" error={err} phase=rewrite',
    'Trace could not be exported. collector={addr} error="{err}"',
  ],
  /** Sentences followed by an object. */
  registry: [
    'lease was granted {"lease":"{id}","ttl":{n},"owner":"{name}"}',
    'lease could not be renewed {"lease":"{id}","error":"{err}"}',
    'member joined the cluster {"member":"{id}","urls":["{url}"],"voter":{bool}}',
    'member left the cluster {"member":"{id}","reason":"{state}"}',
    'snapshot was written {"path":"{path}","bytes":{n},"took":"{dur}"}',
    'snapshot could not be sent to a member {"member":"{id}","path":"{path}","error":"{err}"}',
    'compaction is behind, writes are delayed {"revision":{n},"backlog":{n}}',
    'watcher was cancelled because it is slow {"watcher":{n},"prefix":"{name}"}',
    'heartbeat took too long {"to":"{id}","took":"{dur}","expected":"100ms"}',
    'request of an unknown member was refused {"from":"{addr}","member":"{id}"}',
    'key was deleted {"key":"{name}","revision":{n}}',
    'started as a single member',
    'database was opened {"path":"{path}","size":"{n} MiB"}',
    'failed to check the hash of a member {"member":"{id}","error":"{err}"}',
    'role was changed by {word} {"role":"{name}","grants":{n}}',
    'auth is off, everybody may write',
  ],
  /** Java: sentences with names, and errors after a colon. */
  store: [
    'Flushing table {name} of keyspace {word}, {n} MiB in memory',
    'Compacted {n} files of {name} to {path} in {dur}',
    'Could not read the commit log {path}: {err}',
    'Replica {host} is down, hints are kept for {n} s',
    'Replica {host} is up again',
    'Repair session {uuid} for range ({n},{n}] of {name} failed with error {err}',
    'Repair session {uuid} is complete',
    'Streaming {n} files to {addr} [{state}]',
    'Uncaught exception in thread [{word}-pool-{n}]: {class}: {err}',
    'Slow query took {dur}: {free}',
    'Schema of {name} was changed from version {uuid} to {uuid}',
    'Heap is {n}% full, flushing the largest tables',
    'Node {host} has moved from {word} to {word}',
    'Dropped {n} messages of type {word} in the last {n} ms',
    'Batch of prepared statements for [{name}, {name}] is of size {n}, exceeding the limit by {n}',
    'Cannot start the service {name} because of {err}, giving up',
    'Startup complete',
    'Token of the client {addr} was invalid: {err}',
    'No gossip from the seeds',
    'Initializing index {name} on column {word} with class {class}',
  ],
  /** C: short texts with a prefix. */
  mailer: [
    'connect from {host}[{ip}]',
    'disconnect from {host}[{ip}] after {n} commands',
    '{id}: to=<{mail}>, relay={host}[{ip}]:25, delay={n}, status=sent ({free})',
    '{id}: to=<{mail}>, relay=none, delay={n}, status=deferred ({err})',
    '{id}: from=<{mail}>, size={n}, nrcpt={n} (queue active)',
    '{id}: removed',
    'warning: lookup of {host} did not give {ip}',
    'warning: table {path} is older than its source',
    'reject: {host}[{ip}]: {n} {free}; from=<{mail}> proto=ESMTP',
    'fatal: cannot open {path}: {err}',
    'statistics: max rate {n}/60s for (smtp:{ip})',
    'queue {name} has {n} waiting messages',
    'TLS of {host}[{ip}]: {word} certificate, cipher {name} ({n}/{n} bits)',
    'refreshing the {word} map',
    'child {n} exited with status {n}',
    'terminating on signal {n}',
  ],
  /** Python and Erlang: quotes, tuples and phrases. */
  broker: [
    "accepted a connection of user '{word}' to vhost '{name}' ({addr} -> {addr})",
    "closed the connection ({addr} -> {addr}, vhost: '{name}', user: '{word}'): {err}",
    "queue '{name}' in vhost '{word}' was declared by '{word}'",
    "queue '{name}' in vhost '{word}': leader moved from {host} to {host}",
    'Task {name}[{uuid}] succeeded in {dur}: {bool}',
    'Task {name}[{uuid}] raised unexpected: {err}',
    'Discarding task {name} of the unknown kind {word}',
    'Consumer {id} of queue {name} was cancelled',
    'Mirror of {name} is {n} messages behind',
    'memory watermark set to {n} MiB, {n} bytes used',
    'Plugin {name} started in {n} ms',
    'Error on node {host}: {err}',
    'Cannot bind {name} to {word}: {err}',
    'Policy {word} now applies to {n} queues',
    'Sending due message {name} ({uuid})',
    'Peer discovery of {word} gave no nodes',
    'message store of {name} was rebuilt from {n} segments',
    'Rotating the key of {name}, the old one stays for {n} hours',
  ],
}

/** Log statements that were written after the miner's rules were final. */
export const HELD_BACK: Readonly<Record<string, readonly string[]>> = {
  scheduler: [
    'Assigned {name} to node {host} after {n} tries',
    'Pod {name}/{word} does not fit on any node: {err}',
    'Evicting {name} from {host} because the node is {state}',
    'Could not update the status of {name}: {err}',
    'Preempting {n} pods on {host} for {name}',
    'Node {host} is {state}, its lease ended {dur} ago',
    'Volume {word} of {name} is attached to {host}',
    'Unable to attach volume "{word}" for pod "{name}": {err}',
    'Cycle took {dur} for {n} pods',
    'Quota of namespace {word} is used up, {n} of {n} in use',
    'Webhook {name} answered {n}: {free}',
    'Ignoring unknown field "{word}" in the spec of {name}',
    'Leader election lost',
    'Became the leader {"identity":"{name}","lease":{n}}',
  ],
  database: [
    'checkpoint finished in {dur}, {n} pages written',
    'user {word} connected from {addr} to database {name}',
    'user {word} gave a wrong password ({n} times)',
    'query of {word} was cancelled after {dur}: {free}',
    'deadlock between {n} and {n} on table {name}',
    'cannot extend file "{path}": {err}',
    'index "{name}" of table "{word}" has to be rebuilt',
    'replication of {name} is {n} bytes behind',
    'replica {addr} was dropped, reason={err}',
    'setting {word} changed from {n} to {n}',
    'setting "{name}" cannot be changed now',
    'archiving of {path} failed, exit code {n}',
    'recovery stops at {n}',
    'autovacuum of {name}: removed {n} rows, {n} remain',
  ],
  importer: [
    'INFO read {n} rows of {path}',
    'WARN row {n} of {path} was skipped: {err}',
    'job={uuid} stage={word} state={state} msg="stage is done"',
    'job={uuid} stage={word} msg="stage failed" error="{err}"',
    'Retry {n} of {n} for {url} in {dur}',
    'Download of {url} failed with {err} at byte {n}',
    'Mapping of column {name} to {word} is ambiguous',
    'Uploaded {path} to bucket {name} ({n} bytes)',
    "Lock '{name}' is held by {host}",
    'Schema "{word}" has no field "{name}"',
    'Batch {n} was committed in {dur}',
    'Exiting with code {n}',
  ],
}

/** Generated messages of one service, each with the template that it was made from. */
export function labelledLog(
  service: string,
  seed: number,
  count: number,
): { readonly messages: readonly string[]; readonly truth: readonly string[] } {
  const random = new Random(seed)
  const statements = SERVICES[service] ?? HELD_BACK[service] ?? []
  const drawn = Array.from({ length: count }, () => {
    // A few statements make up most of a log.
    const at = Math.floor(statements.length * random.share() ** 2)
    return fill(statements[at] ?? '', random, false)
  })
  const texts = new Map<string, string>()
  const truth = drawn.map(({ statement }) => {
    let text = texts.get(statement)
    if (text === undefined) {
      const values = drawn.filter((other) => other.statement === statement)
      texts.set(statement, (text = templateOf(statement, values)))
    }
    return text
  })
  return { messages: drawn.map(({ message }) => message), truth }
}

/**
 * Messages of all services, in turn.
 *
 * @param share of messages with words that no message had before
 */
export function mixedLog(
  seed: number,
  count: number,
  share: number,
): readonly { readonly service: string; readonly message: string }[] {
  const random = new Random(seed)
  const services = Object.entries(SERVICES).map(([service, statements]) => ({
    service,
    usual: statements.filter((statement) => !statement.includes('{free}')),
    varied: statements.filter((statement) => hasWords(statement)),
  }))
  return Array.from({ length: count }, () => {
    const isFresh = random.chance(share)
    const { service, usual, varied } = random.pick(services)
    return { service, message: fill(random.pick(isFresh ? varied : usual), random, isFresh).message }
  })
}

const hasWords = (statement: string): boolean =>
  [...statement.matchAll(HOLE)].some(([, kind = '']) => WORDY.has(kind))

interface Drawn {
  readonly statement: string
  readonly message: string
  readonly values: readonly string[]
}

function fill(statement: string, random: Random, isFresh: boolean): Drawn {
  const values: string[] = []
  const message = statement.replaceAll(HOLE, (_, kind: string, at: number) => {
    const isNew = isFresh && WORDY.has(kind)
    const value = isNew ? fresh(random, kind) : (KINDS[kind]?.(random) ?? kind)
    values.push(value)
    return statement[at - 1] === '"' ? value.replaceAll('"', String.raw`\"`) : value
  })
  return { statement, message, values }
}

/** A hole that always had the same value without digits cannot be distinguished from constant text. */
function templateOf(statement: string, drawn: readonly Drawn[]): string {
  let hole = -1
  const text = statement.replaceAll(HOLE, () => {
    hole++
    const [first = '', ...others] = new Set(drawn.map(({ values }) => values[hole] ?? ''))
    return others.length === 0 && !/\d|^(?:true|false)$/.test(first) ? first : '<*>'
  })
  return text.replaceAll(/\b\d[\w.]*/g, '<*>').replaceAll(/<\*>(?:[.:]?<\*>)+/g, '<*>')
}
