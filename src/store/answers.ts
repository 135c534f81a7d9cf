import type { QueryParams, RequestOptions, Store } from './client.js'
import type { Statement } from './statement.js'

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
  readonly nowMs?: () => number
  /** told when the mark can't be renewed */
  readonly onError: (error: unknown) => void
}

interface Answer {
  readonly mark: string
  readonly askedAtMs: number
  readonly rows: Promise<unknown[]>
}

/** questions remembered; the one asked first goes first */
const MAX_ANSWERS = 500
/** of partitions that are dropped by time nobody tells, and a mark can fail to be renewed */
const MAX_AGE_MS = 2_000

export function createAnswers(store: Pick<Store, 'query'>, options: AnswersOptions): Answers {
  const { mark, onError, nowMs = () => performance.now() } = options
  const known = new Map<string, Answer>()

  const ask = (key: string, marked: string, read: () => Promise<unknown[]>): Promise<unknown[]> => {
    const answer = { mark: marked, askedAtMs: nowMs(), rows: read() }
    known.delete(key)
    known.set(key, answer)
    const oldest = known.keys().next()
    if (known.size > MAX_ANSWERS && oldest.done === false) known.delete(oldest.value)
    answer.rows.catch(() => {
      if (known.get(key) === answer) known.delete(key)
    })
    return answer.rows
  }

  return {
    async query<Params extends QueryParams, Row>(
      statement: Statement<Params, Row>,
      params: Params,
      request: RequestOptions = {},
    ): Promise<Row[]> {
      request.signal?.throwIfAborted()
      const marked = await mark.read().catch(() => null)
      // without the mark nobody knows what others have written
      if (marked === null) return await store.query(statement, params, request)
      const key = `${statement.name} ${JSON.stringify(params, toText)}`
      const answer = known.get(key)
      const serves = answer?.mark === marked && nowMs() - answer.askedAtMs < MAX_AGE_MS
      // one question serves everyone, so the signal of a single caller does not end it
      const rows = serves ? answer.rows : ask(key, marked, () => store.query(statement, params))
      // the statement of a name has one kind of row
      return (await unlessAborted(rows, request.signal)) as Row[]
    },
    renew() {
      known.clear()
      mark.renew().catch(onError)
    },
  }
}

const toText = (_key: string, value: unknown): unknown =>
  typeof value === 'bigint' ? `${value}n` : value

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
