/** Words are hashed into this many buckets; two words of one template rarely collide. */
export const BUCKETS = 16_384
const MAX_WORDS = 24

/**
 * Points that common words add to a score before anything is learned. One point is about half the
 * distance between two severities: `data corruption` lifts an ERROR to P1, `retrying` lowers it.
 */
const POINTS: ReadonlyMap<string, number> = new Map([
  ...words(1.6, 'corrupt corrupted corruption outage breach ransomware unrecoverable'),
  ...words(
    1.2,
    'panic fatal oom deadlock overflow exhausted attack intrusion breakin lost loss down',
  ),
  ...words(
    0.9,
    'crash crashed segfault unreachable unavailable killed abort aborted full overload',
  ),
  ...words(
    0.6,
    'failed failure fail error exception denied refused timeout unauthorized forbidden',
  ),
  ...words(0.5, 'critical severe security expired invalid rejected reset broken missing leak'),
  ...words(0.3, 'warning slow degraded retry retries disconnected'),
  ...words(-0.4, 'retrying recovered reconnected deprecated skipped ignoring ignored cached'),
  ...words(
    -0.6,
    'success successful successfully succeeded completed started starting ready healthy',
  ),
  ...words(-0.8, 'debug trace heartbeat ping healthcheck keepalive'),
])

function words(points: number, list: string): [word: string, points: number][] {
  return list.split(' ').map((word) => [word, points])
}

/** Words without meaning for the priority. */
const STOP = new Set(
  'the and for with from into that this was were are has have had not its you can will been but'.split(
    ' ',
  ),
)

export const pointsOf = (word: string): number => POINTS.get(word) ?? 0

/** The distinct words of a template's text, lower case, at most 24; `camelCase` is two words. */
export function wordsOf(text: string): string[] {
  const found = new Set<string>()
  for (const [word] of text
    .slice(0, 2000)
    .matchAll(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+|[\u00aa-\uffff]+/g)) {
    const lower = word.toLowerCase()
    if (lower.length < 3 || lower.length > 40 || STOP.has(lower)) continue
    found.add(lower)
    if (found.size === MAX_WORDS) break
  }
  return [...found]
}

export function bucketOf(word: string): number {
  let h = 0x811c9dc5 | 0
  for (let i = 0; i < word.length; i++) h = Math.imul(h ^ word.charCodeAt(i), 0x01000193)
  return ((h ^ (h >>> 15)) >>> 0) % BUCKETS
}
