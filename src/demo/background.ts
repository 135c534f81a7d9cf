import { MINUTE_MS, SECOND_MS } from '../model/time.js'
import type { Scene } from './scene.js'

/** The messages beside the requests: jobs, caches, the database, mails, bots, and a disk that fills up. */
export function background(scene: Scene): void {
  inventory(scene)
  database(scene)
  logIns(scene)
  mails(scene)
  bots(scene)
  machines(scene)
}

function inventory({ random, write, atMs }: Scene): void {
  const host = `inventory-${random.between(1, 2)}`
  if (random.isOne(2))
    write({
      source: 'inventory',
      severity: 'DEBUG',
      host,
      message: `cache ${random.isOne(5) ? 'miss' : 'hit'} for product ${random.between(100, 640)}`,
    })
  if (random.isOne(9))
    write({
      source: 'inventory',
      severity: 'INFO',
      host,
      message: `reserved ${random.between(1, 4)} of product ${random.between(100, 640)}, ${random.between(0, 180)} left`,
    })
  if (random.isOne(70))
    write({
      source: 'inventory',
      severity: 'WARNING',
      host,
      message: `stock of product ${random.between(100, 640)} is low: ${random.between(0, 5)} left`,
    })
  if (atMs % (10 * MINUTE_MS) === 0)
    write({
      source: 'inventory',
      severity: 'INFO',
      host,
      message: `synchronised ${random.between(4800, 5200)} products with the warehouse in ${random.skewed(4000)} ms`,
    })
}

const QUERIES = [
  'SELECT * FROM orders WHERE user_id = $1 ORDER BY created_at DESC',
  'SELECT p.* FROM products p JOIN stock s ON s.product_id = p.id WHERE s.amount > 0',
  'UPDATE carts SET items = $2 WHERE id = $1',
]

function database({ random, write, atMs }: Scene): void {
  const host = random.pick(['pg-eu-1', 'pg-us-1'])
  if (random.isOne(25)) {
    const ms = random.skewed(700)
    write({
      source: 'shop-db',
      severity: ms > 1400 ? 'WARNING' : 'INFO',
      host,
      message: `duration: ${ms}.${random.between(100, 999)} ms  statement: ${random.pick(QUERIES)}`,
      tags: { duration_ms: ms, db: { name: 'shop' } },
    })
  }
  if (atMs % (5 * MINUTE_MS) === 30 * SECOND_MS)
    write({
      source: 'shop-db',
      severity: 'INFO',
      host,
      message: `checkpoint complete: wrote ${random.between(300, 2400)} buffers; write=${random.between(20, 30)}.${random.between(100, 999)} s`,
      tags: { db: { name: 'shop' } },
    })
}

function logIns({ random, write }: Scene): void {
  const host = `auth-${random.between(1, 2)}`
  if (random.isOne(3))
    write({
      source: 'auth',
      severity: 'INFO',
      host,
      message: `user ${random.between(1000, 1900)} logged in from 84.${random.between(10, 190)}.${random.between(0, 255)}.${random.between(1, 254)}`,
    })
  if (random.isOne(45))
    write({
      source: 'auth',
      severity: 'WARNING',
      host,
      message: `failed log-in for user ${random.between(1000, 1900)}: wrong password (attempt ${random.between(1, 4)})`,
    })
}

function mails({ random, write }: Scene): void {
  if (!random.isOne(7)) return
  const isRefused = random.isOne(40)
  const id = random.hex(8)
  write({
    source: 'mailer',
    severity: isRefused ? 'ERROR' : 'INFO',
    host: 'worker-1',
    message: isRefused
      ? `mail ${id} refused by mx${random.between(1, 3)}.example.net: 550 mailbox unavailable`
      : `mail ${id} sent: order confirmation`,
    tags: { queue: { depth: random.between(0, 9) } },
  })
}

const PROBED = ['/wp-login.php', '/.env', '/phpmyadmin/', '/.git/config']

function bots({ random, write }: Scene): void {
  if (!random.isOne(50)) return
  const region = random.pick(['eu-west', 'us-east'])
  const ms = random.between(1, 3)
  write({
    source: 'gateway',
    severity: 'WARNING',
    host: `gw-${region}-1`,
    message: `GET ${random.pick(PROBED)} 404 ${ms}ms`,
    tags: { http: { method: 'GET', status: 404 }, duration_ms: ms, region },
  })
}

function machines({ random, write, atMs }: Scene): void {
  if (atMs % MINUTE_MS === 0) {
    const percent = 84 + Math.floor(atMs / (9 * MINUTE_MS))
    write({
      source: 'node-agent',
      severity: percent >= 88 ? 'WARNING' : 'INFO',
      host: 'worker-1',
      message: `disk /dev/nvme0n1p2 is ${percent}% full`,
      tags: { disk: { device: '/dev/nvme0n1p2', used_percent: percent } },
    })
  }
  // The same message each time, which is counted as one event.
  if (atMs % (2 * SECOND_MS) === 0)
    write({ source: 'node-agent', severity: 'DEBUG', host: 'worker-1', message: 'heartbeat ok' })
  if (random.isOne(1200))
    write({
      source: 'node-agent',
      severity: 'ERROR',
      host: 'worker-2',
      message: `time server ntp.example.net not reachable, clock may be off by ${random.between(20, 90)} ms`,
    })
}
