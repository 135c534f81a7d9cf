import * as fc from 'fast-check'
import t from 'tap'
import { TemplateMiner } from '../../../src/templates/miner.js'
import type { TemplateRow } from '../../../src/wal/record.js'
import { matches } from '../../../src/templates/template-text.js'

const encoder = new TextEncoder()

/** The table of templates, with the last row of each. */
class Table {
  readonly #rows = new Map<string, { readonly version: number; readonly record: TemplateRow }>()
  #version = 0

  save({ id, source, text, redirectId, born }: TemplateRow): void {
    const record = { id, source, text, redirectId, born }
    this.#rows.set(id, { version: ++this.#version, record })
  }

  since(version: number): readonly TemplateRow[] {
    return [...this.#rows.values()].filter((row) => row.version > version).map((row) => row.record)
  }

  get version(): number {
    return this.#version
  }
}

/** The miner of one instance, which saves its templates and adopts those of the others. */
class Instance {
  readonly miner: TemplateMiner
  readonly #table: Table
  #seen = 0

  constructor(table: Table, nowMs: () => number, limits = {}) {
    this.#table = table
    this.miner = new TemplateMiner(limits, nowMs)
  }

  receive(source: string, message: string): number {
    return this.miner.resolve(source, encoder.encode(message))
  }

  /** @returns the number of saved rows */
  exchange(): number {
    const records = this.#table.since(this.#seen)
    this.#seen = this.#table.version
    this.miner.adopt(records)
    return this.save()
  }

  save(): number {
    const news = this.miner.takeChanges().filter(({ isNews }) => isNews)
    for (const change of news) this.#table.save(change)
    return news.length
  }

  /** Describes a message's template as the API does. */
  describe(no: number): string {
    const root = this.miner.rootOf(no)
    return `${this.miner.idOf(root)} ${this.miner.textOf(root)}`
  }
}

/** Exchanges templates until no instance has changes. @returns the number of rounds */
function settle(instances: readonly Instance[]): number {
  for (let round = 1; round <= 20; round++) {
    if (instances.reduce((saved, instance) => saved + instance.exchange(), 0) === 0) return round
  }
  throw new Error('no end of news')
}

const colours = 'red blue green black white grey pink gold teal cyan'.split(' ')
const clock = (): (() => number) => {
  let ms = 1_700_000_000_000
  return () => (ms += 1)
}

t.test('evidence that is too little on each instance is enough on all together', async (t) => {
  const table = new Table()
  const nowMs = clock()
  const instances = [0, 1, 2].map(() => new Instance(table, nowMs))
  const numbers = colours.map((name, i) => {
    const at = instances[i % 3]
    return [at, at?.receive('app', `connection of service ${name} to the pool was opened again`)]
  }) as [Instance, number][]
  settle(instances)
  const described = new Set(numbers.map(([at, no]) => at.describe(no)))
  t.equal(described.size, 1, [...described].join('\n'))
  t.match(
    [...described][0],
    /^[0-9a-f]{16} connection of service <\*> to the pool was opened again$/,
  )
})

t.test('the oldest template stays, on every instance that merges', async (t) => {
  const table = new Table()
  let ms = 1_700_000_000_000
  const [one, two] = [new Instance(table, () => ms), new Instance(table, () => ms)]
  const text = (name: string): string => `session of user ${name} was opened on the machine`
  const first = two.miner.idOf(two.receive('app', text('anna')))
  ms += 10
  for (const name of colours) one.receive('app', text(name))
  ms += 10
  for (const name of colours.toReversed()) two.receive('app', text(name))
  settle([one, two])
  for (const instance of [one, two]) {
    const no = instance.receive('app', text('zoe'))
    t.equal(instance.describe(no), `${first} ${text('<*>')}`)
  }
})

t.test('two instances with different texts of a template end with one text', async (t) => {
  const table = new Table()
  const nowMs = clock()
  const [one, two] = [new Instance(table, nowMs), new Instance(table, nowMs)]
  const text = (user: string, host: string): string =>
    `the session of ${user} was opened by the daemon on host ${host} again`
  const start = text('anna', 'alpha')
  const no = one.receive('app', start)
  two.receive('app', start)
  settle([one, two])
  for (const name of colours) one.receive('app', text(name, 'alpha'))
  for (const name of colours) two.receive('app', text('anna', name))
  settle([one, two])
  const described = [one, two].map((instance) => instance.describe(instance.receive('app', start)))
  t.equal(described[0], described[1])
  t.equal(described[0], `${one.miner.idOf(no)} ${text('<*>', '<*>')}`)
})

const piece = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...'alpha beta gamma user from for opened'.split(' ')) },
  { weight: 4, arbitrary: fc.constantFrom(...colours) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      ...'12 7.5 MB KB ms /a/b core.12 node-7 a=b x1 :: <*> [y] "q" 10.0.0.1:80 =5'.split(' '),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      'error="red"',
      'error="blue and green"',
      'k=red m=blue',
      '(red, blue)',
      '"a" and "b"',
      '{"k":"red","n":5}',
      '{"k":"b \\"c\\" d","n":["x","y"]}',
      'failed to open it: no room',
      '"unclosed',
      '[[red] blue]',
      'open: {"k":',
      '[1,2',
      ': ',
    ),
  },
)
const message = fc.array(piece, { minLength: 1, maxLength: 8 }).map((pieces) => pieces.join(' '))
const step = fc.oneof(
  { weight: 12, arbitrary: fc.tuple(fc.nat(2), fc.constant('receive' as const), message) },
  { weight: 2, arbitrary: fc.tuple(fc.nat(2), fc.constant('exchange' as const), fc.constant('')) },
  { weight: 1, arbitrary: fc.tuple(fc.nat(2), fc.constant('restart' as const), fc.constant('')) },
)

t.test(
  'all instances end with the same templates in any order of messages and changes',
  async (t) => {
    const seed = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
    t.comment(`seed ${seed}`)
    const holds = (steps: readonly (readonly [number, string, string])[]): boolean => {
      const table = new Table()
      const nowMs = clock()
      const instances = [0, 1, 2].map(() => new Instance(table, nowMs))
      const sent = new Set<string>()
      for (const [at, what, text] of steps) {
        const instance = instances[at]
        if (instance === undefined) continue
        if (what === 'receive') {
          instance.receive('app', text)
          instance.save()
          sent.add(text)
        } else if (what === 'exchange') instance.exchange()
        else {
          // A restart restores the saved rows only.
          const fresh = new Instance(table, nowMs)
          fresh.miner.restore(table.since(0))
          fresh.save()
          instances[at] = fresh
        }
      }
      settle(instances)
      for (const text of sent) {
        const described = instances.map((instance) =>
          instance.describe(instance.receive('app', text)),
        )
        // An instance without this signature mines the message and saves a template that the others adopt.
        settle(instances)
        const again = instances.map((instance) => instance.describe(instance.receive('app', text)))
        if (new Set(again).size !== 1)
          throw new Error(`${text}\n${again.join('\n')}\nbefore\n${described.join('\n')}`)
        if (!matches((again[0] ?? '').slice(17), text)) throw new Error(`${text} is no ${again[0]}`)
      }
      return true
    }
    t.doesNotThrow(() =>
      fc.assert(fc.property(fc.array(step, { minLength: 5, maxLength: 120 }), holds), {
        numRuns: Number(process.env['RUNS'] ?? 150),
        seed,
      }),
    )
  },
)

t.test(
  'a miner that is full leaves out what it has no room for, and quarrels with nobody',
  async (t) => {
    const table = new Table()
    const nowMs = clock()
    const full = new Instance(table, nowMs, { templates: 10, share: 1 })
    const other = new Instance(table, nowMs)
    const word = (n: number): string =>
      n.toString(36).replaceAll(/\d/g, (d) => 'ghijklmnop'[+d] ?? 'q')
    for (let i = 0; i < 60; i++) {
      full.receive('app', `${word(i * 7919)} ${word(i * 31)} full ${word(i * 17)}`)
      other.receive('app', `${word(i * 104_729)} ${word(i * 13)} other ${word(i * 3)}`)
    }
    t.ok(settle([full, other]) < 20)
    t.ok(full.miner.size <= 7, `${full.miner.size} templates`)
  },
)
