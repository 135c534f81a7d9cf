import { createHash } from 'node:crypto'
import type { Redis } from 'ioredis'

export interface Script {
  readonly lua: string
  readonly sha: string
}

const script = (lua: string): Script => ({
  lua,
  sha: createHash('sha1').update(lua).digest('hex'),
})

/** Runs a script by its digest, or by its text when Redis does not know the digest. */
export async function run(
  redis: Redis,
  { lua, sha }: Script,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<unknown> {
  try {
    return await redis.evalsha(sha, keys.length, ...keys, ...args)
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
    return await redis.eval(lua, keys.length, ...keys, ...args)
  }
}

/** Keys: key. Arguments: expected value, next value, ttl ms. Result: 1 when replaced. */
export const compareAndSetScript = script(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1`)

/**
 * Keys: key. Arguments: limit, window ms, cost, merge span ms. Result: allowed (0 or 1), remaining, wait ms.
 * The same steps as `spend` in sliding-window.ts, on the clock of Redis, which all instances share.
 */
export const consumeScript = script(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local cost, span = tonumber(ARGV[3]), tonumber(ARGV[4])
local raw = redis.call('GET', KEYS[1])
local old = raw and cmsgpack.unpack(raw) or {}
local log, spent = {}, 0
for i = 1, #old, 3 do
  if old[i + 1] + window > now then
    log[#log + 1], log[#log + 2], log[#log + 3] = old[i], old[i + 1], old[i + 2]
    spent = spent + old[i + 2]
  end
end
if spent + cost > limit then
  local freed = 0
  for i = 1, #log, 3 do
    freed = freed + log[i + 2]
    if freed >= spent + cost - limit then
      return {0, 0, math.min(log[i + 1] + window - now, window)}
    end
  end
  return {0, 0, window}
end
local last = #log - 2
if last >= 1 and now - log[last] < span then
  log[last + 1], log[last + 2] = now, log[last + 2] + cost
else
  log[#log + 1], log[#log + 2], log[#log + 3] = now, now, cost
end
redis.call('SET', KEYS[1], cmsgpack.pack(log), 'PX', window)
return {1, limit - spent - cost, 0}`)

/** Keys: lock. Arguments: owner, ttl ms. Result: 1 when the owner had the lock. */
export const renewScript = script(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`)

/** Keys: lock. Arguments: owner. Result: 1 when the owner had the lock. */
export const releaseScript = script(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`)
