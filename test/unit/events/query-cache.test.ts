import t from 'tap'
import { createAnswers, type Answers } from '../../../src/events/query-cache.js'
import type { QueryParams, RequestOptions, Store } from '../../../src/clickhouse/client.js'
import type { Statement } from '../../../src/clickhouse/statement.js'

const counted: Statement<{ readonly of: number | bigint }, { readonly n: number }> = {
  name: 'counted',
  sql: '',
}

const MAX_AGE_MS = 2_000

interface Lab {
  readonly answers: Answers
  /** what the store was asked */
  readonly asked: QueryParams[]
  /** of those questions, in their order */
  readonly signals: (AbortSignal | undefined)[]
  readonly clock: { ms: number }
  readonly shared: { mark: string; isDown: boolean }
  readonly errors: unknown[]
  /** ends the questions that wait */
  finish(outcome?: Error): void
}

function lab({ isSlow = false, maxAgeMs = MAX_AGE_MS, text = '' } = {}): Lab {
  const asked: QueryParams[] = []
  const signals: (AbortSignal | undefined)[] = []
  const clock = { ms: 0 }
  const shared = { mark: 'a', isDown: false }
  const errors: unknown[] = []
  let waiting: ((outcome: Error | undefined) => void)[] = []
  const query: Store['query'] = async <P extends QueryParams, Row>(
    _statement: Statement<P, Row>,
    params: P,
    options?: RequestOptions,
  ): Promise<Row[]> => {
    asked.push(params)
    signals.push(options?.signal)
    const n = asked.length
    const outcome = isSlow
      ? await new Promise<Error | undefined>((resolve) => waiting.push(resolve))
      : undefined
    if (outcome !== undefined) throw outcome
    return [{ n, ...(text === '' ? {} : { text }) } as Row]
  }
  const available = (): void => {
    if (shared.isDown) throw new Error('the state is down')
  }
  const answers = createAnswers(
    { query },
    {
      maxAgeMs,
      nowMs: () => clock.ms,
      onError: (error) => errors.push(error),
      mark: {
        read: async () => {
          available()
          return shared.mark
        },
        renew: async () => {
          available()
          shared.mark += '+'
        },
      },
    },
  )
  const finish = (outcome?: Error): void => {
    for (const resolve of waiting.splice(0)) resolve(outcome)
    waiting = []
  }
  return { answers, asked, signals, clock, shared, errors, finish }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

t.test('a question is asked again only after a change, or when its answer is old', async (t) => {
  const { answers, asked, clock, shared } = lab()
  const n = async (of: number | bigint): Promise<number | undefined> =>
    (await answers.query(counted, { of }))[0]?.n
  t.equal(await n(1), 1)
  t.equal(await n(1), 1)
  t.equal(await n(2), 2, 'another question')
  t.equal(await n(2n), 3, 'a number of another kind')
  answers.renew()
  t.equal(await n(1), 4, 'after a change here')
  shared.mark = 'b'
  t.equal(await n(1), 5, 'after a change elsewhere')
  clock.ms = 1_999
  t.equal(await n(1), 5)
  clock.ms = 2_000
  t.equal(await n(1), 6, 'when it is old')
  t.equal(asked.length, 6)
})

t.test(
  'many who ask at once are one question, and none of them ends it for the others',
  async (t) => {
    const { answers, asked, finish } = lab({ isSlow: true })
    const leaving = new AbortController()
    const left = answers.query(counted, { of: 1 }, { signal: leaving.signal })
    const others = [1, 2, 3].map(() => answers.query(counted, { of: 1 }))
    await turn()
    leaving.abort(new Error('gone'))
    await t.rejects(left, /gone/)
    finish()
    t.same(await Promise.all(others), [[{ n: 1 }], [{ n: 1 }], [{ n: 1 }]])
    t.equal(asked.length, 1)
    await t.rejects(answers.query(counted, { of: 1 }, { signal: leaving.signal }), /gone/)
  },
)

t.test('what was asked before a change does not answer who asks after it', async (t) => {
  const { answers, finish } = lab({ isSlow: true })
  const before = answers.query(counted, { of: 1 })
  await turn()
  answers.renew()
  const after = answers.query(counted, { of: 1 })
  await turn()
  finish()
  t.same([await before, await after], [[{ n: 1 }], [{ n: 2 }]])
})

t.test('a failure is not remembered', async (t) => {
  const { answers, finish } = lab({ isSlow: true })
  const failing = answers.query(counted, { of: 1 })
  await turn()
  finish(new Error('no answer'))
  await t.rejects(failing, /no answer/)
  const again = answers.query(counted, { of: 1 })
  await turn()
  finish()
  t.same(await again, [{ n: 2 }])
})

t.test('without the mark every question is asked', async (t) => {
  const { answers, asked, shared, errors } = lab()
  shared.isDown = true
  await answers.query(counted, { of: 1 })
  await answers.query(counted, { of: 1 })
  t.equal(asked.length, 2)
  answers.renew()
  await turn()
  t.match(errors, [/state is down/])
})

t.test('a question ends when everybody who waits for it has left, and only then', async (t) => {
  const { answers, asked, signals, finish } = lab({ isSlow: true })
  const [first, second] = [new AbortController(), new AbortController()]
  const left = answers.query(counted, { of: 1 }, { signal: first.signal })
  const leftToo = answers.query(counted, { of: 1 }, { signal: second.signal })
  await turn()
  first.abort(new Error('gone'))
  await t.rejects(left, /gone/)
  t.equal(signals[0]?.aborted, false, 'another one waits')
  second.abort(new Error('gone too'))
  await t.rejects(leftToo, /gone too/)
  t.equal(signals[0]?.aborted, true)
  const next = answers.query(counted, { of: 1 })
  await turn()
  t.equal(asked.length, 2, 'nobody waits for a question that was ended')
  finish()
  t.same(await next, [{ n: 2 }])
})

t.test('nothing is kept when answers are to serve for no time', async (t) => {
  const { answers, asked } = lab({ maxAgeMs: 0 })
  await answers.query(counted, { of: 1 })
  await answers.query(counted, { of: 1 })
  t.equal(asked.length, 2)
})

t.test('questions of one name are told apart by their text', async (t) => {
  const { answers, asked } = lab()
  await answers.query(counted, { of: 1 })
  await answers.query({ ...counted, sql: 'SELECT 2' }, { of: 1 })
  t.equal(asked.length, 2)
})

t.test('answers together take no more than so much memory', async (t) => {
  const { answers, asked } = lab({ text: 'x'.repeat(10 * 1024 * 1024) })
  for (const of of [1, 2, 3, 4]) await answers.query(counted, { of })
  t.equal(asked.length, 4)
  await answers.query(counted, { of: 4 })
  await answers.query(counted, { of: 3 })
  await answers.query(counted, { of: 2 })
  t.equal(asked.length, 4, 'three of them fit')
  await answers.query(counted, { of: 1 })
  t.equal(asked.length, 5)
})

t.test('so many answers are remembered and no more', async (t) => {
  const { answers, asked } = lab()
  for (let of = 0; of < 501; of++) await answers.query(counted, { of })
  await answers.query(counted, { of: 500 })
  t.equal(asked.length, 501)
  await answers.query(counted, { of: 0 })
  t.equal(asked.length, 502, 'the first one has gone')
})
