import { Random } from './random.js'

/** Writes one value into a message; the text needs no escaping in JSON. */
export type Value = (random: Random) => string

const HEX = '0123456789abcdef'
const ALPHA = 'bcdfghjklmnpqrstvwxz2456789'

function letters(random: Random, alphabet: string, length: number): string {
  let text = ''
  for (let i = 0; i < length; i++) text += alphabet[random.below(alphabet.length)]
  return text
}

function hex(random: Random, length: number): string {
  let text = ''
  for (; text.length + 8 <= length;) text += random.uint32().toString(16).padStart(8, '0')
  return text + letters(random, HEX, length - text.length)
}

const uuid: Value = (random) => {
  const h = hex(random, 32)
  return `${h.slice(0, 8)}-${h.slice(8, 12)}-4${h.slice(13, 16)}-a${h.slice(17, 20)}-${h.slice(20)}`
}

/** Pools are the same for every seed: the names of a fleet are fixed, its traffic varies. */
const made = new Random(0x10c)
const pool = (size: number, make: (random: Random, i: number) => string): readonly string[] =>
  Array.from({ length: size }, (_, i) => make(made, i))

const CLIENT_IPS = pool(3000, (r) =>
  [r.pick([23, 45, 82, 91, 103, 141, 178, 203]), r.below(256), r.below(256), r.between(1, 254)].join('.'),
)
const INNER_IPS = pool(240, (r, i) => `10.${r.pick([8, 12, 20])}.${i % 16}.${r.between(2, 250)}`)
const FIRST = 'anna ben chen dara elif farid greta hugo ines jonas kira luis maya nils olga pavel quinn rosa sven tara'.split(' ')
const USERS = pool(260, (r, i) => (i < 20 ? (FIRST[i] ?? 'ops') : `${r.pick(FIRST)}.${letters(r, ALPHA, 4)}`))
const GUESSED = 'root admin test oracle ubuntu postgres guest user ftp git www-data pi nagios deploy minecraft'.split(' ')
const SERVICES = 'checkout cart catalog search payments invoices shipping inventory profile session mailer media pricing reviews fraud ledger'.split(' ')
const PODS = pool(320, (r) => `${r.pick(SERVICES)}-${hex(r, 9)}-${letters(r, ALPHA, 5)}`)
const TABLES = 'orders order_items customers sessions invoices payments stock_moves products price_history audit_trail carts'.split(' ')
const ROUTES = ['/api/v1/orders', '/api/v1/cart', '/api/v2/search', '/api/v1/products', '/assets/app', '/health', '/login', '/api/v1/sessions', '/api/v2/recommendations', '/img/thumb', '/api/v1/invoices']
const DISKS = ['sda', 'sdb', 'nvme0n1', 'nvme1n1', 'dm-0', 'md127']
const CLASSES = ['o.e.shop.OrderService', 'o.e.shop.CartController', 'o.e.pay.GatewayClient', 'o.e.stock.Reservation', 'o.e.auth.TokenFilter', 'o.e.search.IndexWriter']
const FAULTS = ['java.net.SocketTimeoutException: Read timed out', 'java.sql.SQLTransientConnectionException: no connection within 30000ms', 'java.lang.IllegalStateException: reservation is closed', 'java.io.IOException: Connection reset by peer', 'java.util.concurrent.TimeoutException: no reply']
const TOPICS = ['orders.v1', 'payments.v2', 'stock.events', 'mail.outbox', 'clicks.raw', 'audit.v1']
const AGENTS = ['Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0', 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36', 'curl/8.5.0', 'okhttp/4.12.0', 'kube-probe/1.29', 'Go-http-client/2.0']
const MOUNTS = ['/', '/var', '/var/lib/docker', '/home', '/data/1', '/data/2', '/data/3']

const two = (n: number): string => (n < 10 ? `0${n}` : String(n))

/** The values of a message pattern, by the name between angle brackets. */
export const VALUES = {
  client: (r) => r.skewed(CLIENT_IPS),
  inner: (r) => r.skewed(INNER_IPS),
  port: (r) => String(r.between(32768, 60999)),
  pid: (r) => String(r.between(300, 41_000)),
  user: (r) => r.skewed(USERS),
  guessed: (r) => r.skewed(GUESSED),
  service: (r) => r.skewed(SERVICES),
  pod: (r) => r.skewed(PODS),
  table: (r) => r.skewed(TABLES),
  route: (r) => r.skewed(ROUTES),
  disk: (r) => r.pick(DISKS),
  class: (r) => r.skewed(CLASSES),
  fault: (r) => r.skewed(FAULTS),
  topic: (r) => r.skewed(TOPICS),
  agent: (r) => r.skewed(AGENTS),
  mount: (r) => r.skewed(MOUNTS),
  ms: (r) => String(r.logBetween(1, 9000)),
  seconds: (r) => `${r.logBetween(1, 120)}.${r.between(100, 999)}`,
  bytes: (r) => String(r.logBetween(90, 80_000_000)),
  count: (r) => String(r.logBetween(1, 5000)),
  few: (r) => String(r.between(0, 9)),
  percent: (r) => String(r.between(1, 99)),
  id: (r) => String(r.between(100_000, 99_999_999)),
  blk: (r) => `blk_${r.chance(0.5) ? '-' : ''}${r.between(1, 9)}${r.uint32()}${two(r.below(100))}`,
  hex8: (r) => hex(r, 8),
  hex12: (r) => hex(r, 12),
  addr: (r) => `0x${hex(r, 16)}`,
  sha: (r) => hex(r, 64),
  uuid,
  session: (r) => `0x${hex(r, 15)}`,
  finger: (r) => `SHA256:${letters(r, 'ABCDEFGHKLMNPQRSTUVWXYZabcdefghkmnopqrstuvwxyz23456789', 43)}`,
  ok: (r) => r.pick(['200', '200', '200', '200', '201', '204', '304', '301']),
  bad: (r) => r.pick(['400', '401', '403', '404', '404', '429']),
  down: (r) => r.pick(['500', '502', '503', '504']),
  verb: (r) => r.pick(['GET', 'GET', 'GET', 'POST', 'PUT', 'DELETE']),
  uptime: (r) => `${r.between(1000, 9_999_999)}.${r.between(100_000, 999_999)}`,
  clock: (r) => `${two(r.below(24))}:${two(r.below(60))}:${two(r.below(60))}`,
  temp: (r) => String(r.between(38, 97)),
  file: (r) => `/var/wal/${r.skewed(SERVICES)}/${hex(r, 6)}.dat`,
  mac: (r) => Array.from({ length: 6 }, () => hex(r, 2)).join(':'),
  lsn: (r) => `${r.between(1, 9)}/${hex(r, 8).toUpperCase()}`,
} as const satisfies Record<string, Value>

const hosts = ['web', 'app', 'db', 'node', 'cache', 'edge', 'batch', 'queue']

/** 128 machines. */
export const HOSTS: readonly string[] = Array.from(
  { length: 128 },
  (_, i) => `${hosts[i % hosts.length]}-${two(1 + Math.floor(i / hosts.length))}.prod.fra1.shop.example`,
)
