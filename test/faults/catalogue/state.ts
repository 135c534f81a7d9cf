import { Redis } from 'ioredis'
import { setTimeout as sleep } from 'node:timers/promises'
import { startRedis, type RedisServer } from '../../support/redis.js'
import type { Env } from '../installation.js'
import type { Fault, Setting } from '../trial.js'
import { whileTold } from '../watch.js'

/** Each trial has a Redis of its own. */
const servers = new Map<string, RedisServer>()

async function withRedis({ dir, owner }: Setting): Promise<Env> {
  const redis = await startRedis()
  if (redis === null) throw new Error('redis-server is not installed')
  servers.set(dir, redis)
  owner.teardown(() => redis.kill())
  return { REDIS_URL: redis.url, JWT_SECRET: 'the same for all instances of the fault suite' }
}

const redisOf = (dir: string): RedisServer => {
  const redis = servers.get(dir)
  if (redis === undefined) throw new Error('bug: this fault has no Redis')
  return redis
}

export const stateFaults: readonly Fault[] = [
  {
    id: 'redis-killed',
    title: 'Redis killed, and back empty',
    rounds: 2,
    clickhouse: 'embedded',
    prepare: withRedis,
    async strike({ dir, installation, pause }) {
      await redisOf(dir).kill()
      await whileTold(
        () => installation.api,
        'state',
        () => pause(300, 1500),
      )
      await redisOf(dir).start()
    },
  },
  {
    id: 'redis-flushed',
    title: 'Redis flushed',
    rounds: 3,
    clickhouse: 'embedded',
    prepare: withRedis,
    async strike({ dir }) {
      const client = new Redis(redisOf(dir).url)
      await client.flushall()
      client.disconnect()
    },
  },
  {
    id: 'redis-slow',
    title: 'Redis slow: it stands still again and again',
    rounds: 2,
    clickhouse: 'embedded',
    prepare: withRedis,
    async strike({ dir, random }) {
      const redis = redisOf(dir)
      for (let i = 0; i < 4; i++) {
        redis.pause()
        await sleep(100 + random() * 1200)
        redis.resume()
        await sleep(random() * 200)
      }
    },
  },
  {
    id: 'two-instances',
    title: 'two instances on one database, each in turn killed',
    rounds: 2,
    clickhouse: 'server',
    twoInstances: true,
    prepare: withRedis,
    async strike({ installation, second, random, pause }, round) {
      const one = round % 2 === 0 || second === null ? installation : second
      await pause(200, 800)
      await one.kill()
      await sleep(random() * 300)
      await one.start()
    },
  },
]
