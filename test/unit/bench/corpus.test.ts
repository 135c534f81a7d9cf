import t from 'tap'
import { Corpus, type CorpusOptions, sourceNames } from '../../../bench/data/corpus.js'
import { KINDS } from '../../../bench/data/kinds.js'
import { countDistinct, Tally, widenSteps } from '../../../bench/data/tally.js'
import { SEVERITIES } from '../../../src/model/event.js'
import { MINUTE_MS, HOUR_MS, DAY_MS } from '../../../src/model/time.js'

const START_MS = Date.UTC(2026, 4, 3, 10)
const options = (changes: Partial<CorpusOptions> = {}): CorpusOptions => ({
  seed: 7,
  events: 20_000,
  startMs: START_MS,
  spanMs: 72_000,
  sources: 16,
  ...changes,
})

function text(corpus: Corpus, maxBytes: number): string {
  let all = ''
  for (let block = corpus.block(maxBytes); block !== null; block = corpus.block(maxBytes))
    all += block.bytes.toString('utf8')
  return all
}

const linesOf = (all: string): string[] => all.split('\n').slice(0, -1)

t.test('the same options give the same bytes, however they are cut into blocks', async (t) => {
  const whole = text(new Corpus(options()), 1 << 30)
  t.ok(whole === text(new Corpus(options()), 10_000))
  t.notOk(whole === text(new Corpus(options({ seed: 8 })), 1 << 30))
})

t.test('a block holds whole lines and says how many', async (t) => {
  const corpus = new Corpus(options({ events: 1000 }))
  let events = 0
  for (let block = corpus.block(1); block !== null; block = corpus.block(20_000)) {
    const lines = linesOf(block.bytes.toString('utf8'))
    t.equal(lines.length, block.events)
    events += block.events
  }
  t.equal(events, 1000)
})

t.test('lines are JSON of five fields, about 246 bytes on average', async (t) => {
  const all = text(new Corpus(options()), 1 << 30)
  const lines = linesOf(all)
  t.equal(lines.length, 20_000)
  const bytes = Buffer.byteLength(all) / lines.length
  t.ok(bytes > 236 && bytes < 256, `${bytes} bytes a line`)
  const forms = new Set(lines.map((line) => Object.keys(JSON.parse(line)).join()))
  t.same([...forms], ['timestamp,source,host,severity,message'])
})

t.test('the counts are those of the lines', async (t) => {
  const tally = new Tally(1)
  const corpus = new Corpus(options())
  const block = corpus.block(1 << 30, (event) => tally.add(event))
  const counts = tally.counts()
  const events = linesOf(block?.bytes.toString('utf8') ?? '').map((line) => JSON.parse(line))
  t.equal(counts.events, events.length)
  const bySeverity = SEVERITIES.map(
    (name) => events.filter(({ severity }) => severity === name).length,
  )
  t.same(counts.severities, bySeverity)
  t.ok(
    bySeverity.every((n) => n > 0),
    'every severity occurs',
  )
  for (const [name, { count, errors, lastMs }] of counts.sources) {
    const own = events.filter(({ source }) => source === name)
    t.equal(count, own.length, name)
    t.equal(errors, own.filter(({ severity }) => /ERROR|CRITICAL/.test(severity)).length, name)
    t.equal(lastMs, Math.max(...own.map(({ timestamp }) => Date.parse(timestamp))), name)
  }
  const seconds = new Set(events.map(({ timestamp }) => Math.floor(Date.parse(timestamp) / 1000)))
  t.equal(counts.steps.size, seconds.size)
  t.equal(counts.latestMs, Math.max(...events.map(({ timestamp }) => Date.parse(timestamp))))
})

t.test('wider steps hold what the seconds in them hold', async (t) => {
  const tally = new Tally(1)
  tally.add({ timestampMs: 59_999, source: 'a', severity: 0 })
  tally.add({ timestampMs: MINUTE_MS, source: 'a', severity: 4 })
  tally.add({ timestampMs: 119_000, source: 'a', severity: 4 })
  t.same(
    [...widenSteps(tally.counts(), 60)],
    [
      [0, [1, 0, 0, 0, 0]],
      [60, [0, 0, 0, 0, 2]],
    ],
  )
})

t.test(
  'no event is later than the end, a few are late, and most are nearly in order',
  async (t) => {
    const events = linesOf(text(new Corpus(options()), 1 << 30)).map((line) => JSON.parse(line))
    const times = events.map(({ timestamp }) => Date.parse(timestamp))
    t.ok(times.every((time) => time < START_MS + 72_000 && time > START_MS - 4 * DAY_MS))
    let latest = 0
    const lateness = times.map((time) => (latest = Math.max(latest, time)) - time)
    const late = lateness.filter((ms) => ms >= 1000).length / times.length
    t.ok(late > 0.005 && late < 0.015, `${late} of them late`)
    t.ok(
      lateness.some((ms) => ms > 600_000),
      'some by more than ten minutes',
    )
    t.ok(
      lateness.some((ms) => ms > 0 && ms < 100),
      'some out of order by little',
    )
  },
)

t.test('repeats make fewer events than messages, and a wider window fewer still', async (t) => {
  const distinct = (windowMs: number): number => countDistinct([new Corpus(options())], windowMs)
  const [narrow, wide] = [distinct(1000), distinct(HOUR_MS)]
  t.ok(narrow < 19_900 && narrow > 18_000, `${narrow}`)
  t.ok(wide < narrow, `${wide} after ${narrow}`)
})

t.test('an event lasts one window from its first occurrence', async (t) => {
  const at = (...times: number[]): Corpus => {
    const corpus = new Corpus(options({ events: 0 }))
    let i = 0
    corpus.next = () => {
      const timestampMs = times[i++]
      return timestampMs === undefined
        ? null
        : { timestampMs, source: 's', host: 'h', severity: 1, message: 'm', tags: '', pattern: 0 }
    }
    return corpus
  }
  t.equal(countDistinct([at(0, 59_999)], MINUTE_MS), 1)
  t.equal(countDistinct([at(0, MINUTE_MS)], MINUTE_MS), 2)
  t.equal(countDistinct([at(0, 59_999, MINUTE_MS)], MINUTE_MS), 2, 'a repeat does not prolong it')
  t.equal(countDistinct([at(10, 9)], MINUTE_MS), 2, 'what is earlier is another event')
  t.equal(countDistinct([at(0), at(1)], MINUTE_MS), 1, 'one stream continues the other')
})

t.test('any number of sources has distinct names, the kinds in turn', async (t) => {
  t.equal(KINDS.length, 16)
  t.equal(new Set(sourceNames(100)).size, 100)
  const tally = new Tally(1)
  new Corpus(options({ sources: 3 })).block(1 << 30, (event) => tally.add(event))
  t.same([...tally.counts().sources.keys()].sort(), sourceNames(3).sort())
  t.throws(() => new Corpus(options({ sources: 0 })), RangeError)
})
