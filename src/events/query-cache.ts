import { LRUCache } from 'lru-cache'
import type { QueryParams, RequestOptions, Store } from '../clickhouse/client.js'
import type { Statement } from '../clickhouse/statement.js'

/** The marks of what has changed, shared by all instances. */
export interface ChangeMark {
  /** @returns another text after each change that is made by any instance */
  read(): Promise<string>
  /** Something was written, corrected or deleted here. */
  renew(): Promise<void>
}

/**
 * Answers of ClickHouse that serve until something is written: the same question asked by many, or again
 * and again, is put once. An answer is never older than the last change, and callers must not change it.
 */
export interface Answers extends Pick<Store, 'query'> {
  /** Something was written, corrected or deleted here: nothing that was read before serves any more. */
  renew(): void
}

export interface AnswersOptions {
  readonly mark: ChangeMark
  /** how long an answer serves; of partitions that are dropped by time nobody tells, and a mark can fail to be renewed */
  readonly maxAgeMs: number
  readonly nowMs?: () => number
  /** told when the mark can't be renewed */
  readonly onError: (error: unknown) => void
}

interface Answer {
  readonly mark: string
  readonly askedAtMs: number
  readonly rows: Promise<unknown[]>
  /** who waits for it; the last one to leave ends the question */
  waiting: number
  readonly question: AbortController
}

/** questions remembered; the one used longest ago goes first */
const MAX_ANSWERS = 500
/** of their answers together, as far as they have come */
const MAX_BYTES = 32 * 1024 * 1024

export function createAnswers(store: Pick<Store, 'query'>, options: AnswersOptions): Answers {
  const { mark, maxAgeMs, onError, nowMs = () => performance.now() } = options
  const known = new LRUCache<string, Answer>({ max: MAX_ANSWERS, maxSize: MAX_BYTES })

  const ask = (
    key: string,
    marked: string,
    read: (signal: AbortSignal) => Promise<unknown[]>,
  ): Answer => {
    const question = new AbortController()
    const rows = read(question.signal)
    const answer = { mark: marked, askedAtMs: nowMs(), rows, waiting: 0, question }
    known.set(key, answer, { size: 1 })
    const forget = (): boolean => known.peek(key) === answer && known.delete(key)
    const keep = async (): Promise<void> => {
      const size = sizeOf(await rows) + key.length
      // its size is not looked at when it only replaces itself
      if (forget()) known.set(key, answer, { size })
    }
    keep().catch(forget)
    return answer
  }

  return {
    async query<Params extends QueryParams, Row>(
      statement: Statement<Params, Row>,
      params: Params,
      request: RequestOptions = {},
    ): Promise<Row[]> {
      const { signal, ...others } = request
      signal?.throwIfAborted()
      const marked = maxAgeMs === 0 ? null : await mark.read().catch(() => null)
      // without the mark nobody knows what others have written
      if (marked === null) return await store.query(statement, params, request)
      const key = `${statement.sql} ${JSON.stringify(params, toText)}`
      const kept = known.get(key)
      const serves =
        kept?.mark === marked &&
        nowMs() - kept.askedAtMs < maxAgeMs &&
        !kept.question.signal.aborted
      const answer = serves
        ? kept
        : ask(key, marked, (ending) =>
            store.query(statement, params, { ...others, signal: ending }),
          )
      // the statement has one kind of row
      return (await waitFor(answer, signal)) as Row[]
    },
    renew() {
      known.clear()
      mark.renew().catch(onError)
    },
  }
}

const toText = (_key: string, value: unknown): unknown =>
  typeof value === 'bigint' ? `${value}n` : value

/** of a number, and of what holds the characters of a text */
const VALUE_BYTES = 16

/** About what the rows take in memory. */
function sizeOf(rows: readonly unknown[]): number {
  let bytes = 1
  for (const row of rows)
    for (const value of Object.values(row as object))
      bytes += VALUE_BYTES + (typeof value === 'string' ? value.length : 0)
  return bytes
}

/** One question serves everyone, so a caller who leaves ends it only when nobody else waits. */
async function waitFor(answer: Answer, signal: AbortSignal | undefined): Promise<unknown[]> {
  answer.waiting++
  try {
    return await unlessAborted(answer.rows, signal)
  } finally {
    answer.waiting--
    if (answer.waiting === 0 && signal?.aborted === true) answer.question.abort()
  }
}

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
