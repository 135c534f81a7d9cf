/*
 * The live tail. After each stored batch, every distinct query is run once for what was stored
 * since its last run, and the result goes to all its subscribers (arrivals.ts defines "since"). A
 * client with unread messages gets none; what it misses is merged into its next message
 * (tail-messages.ts). A subscription starts between two rounds, so that it gets every later arrival
 * exactly once. One that resumes first gets the arrivals from its watermark to its start, by a
 * query of its own. A stored batch is signalled to all instances. Signals may be lost, so a round
 * also begins every few seconds.
 */

import { isPatternError } from '../clickhouse/failure.js'
import { createPaced, type Paced } from './paced.js'
import { AppError } from '../model/errors.js'
import type { ListedEvent } from '../model/event.js'
import type { Query } from '../query/ast.js'
import type { Arrivals, Blocks } from './arrivals.js'
import type { Redirects } from './filter.js'
import { KPI_CHANNEL, type KpiSignals } from './kpi-push.js'
import {
  errorMessage,
  joinSpans,
  rowsMessage,
  subscribedMessage,
  unsubscribedMessage,
  type TailPosition,
  type TailRow,
  type TailSpan,
} from './tail-messages.js'

export interface TailClient {
  readonly userId: string
  readonly bufferedBytes: number
  /** @returns false when the text was dropped */
  send(text: string): boolean
}

/** A query together with the current meaning of its names. */
interface Meaning {
  readonly query: Query
  readonly redirects: Redirects
}

export interface TailRequest {
  /** The client's name for the subscription. */
  readonly id: string
  /** Identifies equal queries. */
  readonly key: string
  readonly meaning: () => Meaning
  /** The most rows of a message. */
  readonly max: number
  readonly resume: TailPosition | null
}

export interface TailDeps {
  readonly arrivals: Arrivals
  readonly signals: Pick<KpiSignals, 'subscribe' | 'onStatus'>
  readonly toItem: (event: ListedEvent) => object
  readonly toWatermark: (position: TailPosition) => string
  /** Runs the catch-up query of a subscription under the user's limit of running queries. */
  readonly ask: <T>(userId: string, work: () => Promise<T>) => Promise<T>
  readonly onError: (error: unknown) => void
  /** Default: 500. */
  readonly intervalMs?: number
}

export interface Tail {
  /** @throws AppError overloaded when there are too many subscriptions or questions */
  subscribe(client: TailClient, request: TailRequest): void
  unsubscribe(client: TailClient, id: string): void
  /** Called when the client has read some of its messages. */
  drained(client: TailClient): void
  closed(client: TailClient): void
  /** Called after a stored batch of this instance. */
  onStored(): void
  readonly subscriptions: number
  readonly questions: number
  close(): void
}

const INTERVAL_MS = 500
const FAILED_MS = 2_000
/** With many queries the rounds are rarer, so that they take a tenth of a core (bench/NOTES.md). */
const SHARE = 0.1
const POLL_MS = 5_000
/** The timeout of a query. One that takes longer for a moment's arrivals would never keep up. */
const QUESTION_MS = 10_000
/** A query that fails this often in a row, while ClickHouse answers others, is dropped. */
const MAX_FAILURES = 5
/** The greatest age of a client's watermark, even when nothing matches. */
const IDLE_MS = 10_000
const MAX_SUBSCRIPTIONS = 16
const MAX_SUBSCRIPTIONS_OF_USER = 64
const MAX_QUESTIONS = 200

interface Subscription {
  readonly client: TailClient
  readonly request: TailRequest
  /** Aborted when the subscription ends. */
  readonly ended: AbortController
  /** What the client has not been sent yet. */
  missed: TailSpan | null
  /** Whether the query from its watermark is running. */
  isCatchingUp: boolean
  sentAtMs: number
}

/** A distinct query and its subscribers. */
interface Question {
  readonly key: string
  readonly subscriptions: Set<Subscription>
  position: TailPosition
  failures: number
}

export async function createTail(deps: TailDeps): Promise<Tail> {
  const tail = new LiveTail(deps)
  await tail.listen()
  return tail
}

class LiveTail implements Tail {
  readonly #deps: TailDeps
  readonly #rounds: Paced
  readonly #questions = new Map<string, Question>()
  readonly #clients = new Map<TailClient, Map<string, Subscription>>()
  readonly #joining = new Set<Subscription>()
  readonly #ends: (() => void)[] = []

  constructor(deps: TailDeps) {
    this.#deps = deps
    this.#rounds = createPaced({
      intervalMs: deps.intervalMs ?? INTERVAL_MS,
      share: SHARE,
      failedMs: FAILED_MS,
      work: () => this.#round(),
      onError: deps.onError,
    })
  }

  async listen(): Promise<void> {
    const { signals } = this.#deps
    const poll = setInterval(() => this.onStored(), POLL_MS).unref()
    this.#ends.push(
      await signals.subscribe(KPI_CHANNEL, () => this.onStored()),
      signals.onStatus((status) => {
        if (status === 'ok') this.onStored()
      }),
      () => clearInterval(poll),
    )
  }

  get subscriptions(): number {
    return [...this.#clients.values()].reduce((sum, own) => sum + own.size, 0)
  }

  get questions(): number {
    return this.#questions.size
  }

  subscribe(client: TailClient, request: TailRequest): void {
    this.#check(client, request)
    this.#end(client, request.id)
    const subscription: Subscription = {
      client,
      request,
      ended: new AbortController(),
      missed: null,
      isCatchingUp: false,
      sentAtMs: performance.now(),
    }
    const own = this.#clients.get(client) ?? new Map<string, Subscription>()
    this.#clients.set(client, own.set(request.id, subscription))
    this.#joining.add(subscription)
    this.#rounds.signal()
  }

  unsubscribe(client: TailClient, id: string): void {
    this.#end(client, id)
    client.send(unsubscribedMessage(id))
  }

  drained(client: TailClient): void {
    this.#flush(client)
  }

  closed(client: TailClient): void {
    for (const id of this.#clients.get(client)?.keys() ?? []) this.#end(client, id)
  }

  onStored(): void {
    if (this.#clients.size > 0) this.#rounds.signal()
  }

  close(): void {
    this.#rounds.close()
    for (const end of this.#ends) end()
    for (const client of this.#clients.keys()) this.closed(client)
  }

  #check(client: TailClient, { id, key }: TailRequest): void {
    const replaced = this.#clients.get(client)?.get(id)
    const others = [...this.#clients.values()]
      .flatMap((own) => [...own.values()])
      .filter((one) => one !== replaced)
    if (others.filter((one) => one.client === client).length >= MAX_SUBSCRIPTIONS)
      throw tooMany(`a connection has at most ${MAX_SUBSCRIPTIONS} subscriptions`)
    const ofUser = others.filter((one) => one.client.userId === client.userId)
    if (ofUser.length >= MAX_SUBSCRIPTIONS_OF_USER)
      throw tooMany(`a user has at most ${MAX_SUBSCRIPTIONS_OF_USER} subscriptions`)
    const keys = new Set(others.map(({ request }) => request.key))
    if (!keys.has(key) && keys.size >= MAX_QUESTIONS)
      throw tooMany(`at most ${MAX_QUESTIONS} different questions can be tailed`)
  }

  #end(client: TailClient, id: string): void {
    const own = this.#clients.get(client)
    const subscription = own?.get(id)
    if (own === undefined || subscription === undefined) return
    subscription.ended.abort()
    this.#joining.delete(subscription)
    own.delete(id)
    if (own.size === 0) this.#clients.delete(client)
    const { key } = subscription.request
    const question = this.#questions.get(key)
    question?.subscriptions.delete(subscription)
    if (question?.subscriptions.size === 0) this.#questions.delete(key)
  }

  /** Runs every query for what was stored since its last run, then starts waiting subscriptions. */
  async #round(): Promise<void> {
    if (this.#clients.size === 0) return
    const atMs = Date.now()
    const blocks = await this.#deps.arrivals.newest({ timeoutMs: QUESTION_MS })
    const now: TailPosition = { atMs, blocks }
    let failure: unknown = null
    for (const question of this.#questions.values()) {
      try {
        await this.#advance(question, now)
      } catch (error) {
        failure = error
        this.#failed(question, error)
      }
    }
    for (const subscription of this.#joining) this.#join(subscription, now)
    for (const client of this.#clients.keys()) this.#flush(client)
    if (failure !== null) throw failure
  }

  async #advance(question: Question, now: TailPosition): Promise<void> {
    const after = sinceOf(question.position.blocks, now.blocks)
    const fromMs = question.position.atMs
    if (isSame(after, now.blocks)) {
      question.position = now
      return
    }
    const subscriptions = [...question.subscriptions]
    const [first] = subscriptions
    if (first === undefined) return
    const limit = Math.max(...subscriptions.map(({ request }) => request.max))
    const arrived = await this.#read(first.request, { after, now, limit })
    question.position = now
    question.failures = 0
    const span = { fromMs, to: now, ...arrived }
    for (const subscription of subscriptions) {
      if (subscription.ended.signal.aborted) continue
      subscription.missed = joinSpans(subscription.missed, span, subscription.request.max)
    }
  }

  async #read(
    { meaning }: TailRequest,
    { after, now, limit }: { after: Blocks; now: TailPosition; limit: number },
    signal?: AbortSignal,
  ): Promise<Pick<TailSpan, 'matched' | 'rows'>> {
    const asked = { ...meaning(), after, upTo: now.blocks, limit, nowMs: now.atMs }
    // A query over a long span may take as long as a search.
    const options = signal === undefined ? { timeoutMs: QUESTION_MS } : { signal, isSearch: true }
    const { matched, events } = await this.#deps.arrivals.read(asked, options)
    return { matched, rows: events.map((event) => this.#toRow(event)) }
  }

  #toRow(event: ListedEvent): TailRow {
    const { timestampMs: tsMs, id } = event
    return { tsMs, id, json: JSON.stringify(this.#deps.toItem(event)) }
  }

  #failed(question: Question, error: unknown): void {
    question.failures++
    if (isPassing(error) && question.failures < MAX_FAILURES) return
    for (const subscription of question.subscriptions) this.#giveUp(subscription, error)
  }

  #giveUp({ client, request: { id } }: Subscription, error: unknown): void {
    this.#end(client, id)
    client.send(errorMessage(id, faultOf(error)))
  }

  #join(subscription: Subscription, now: TailPosition): void {
    const { client, request } = subscription
    const { key, id, resume } = request
    const known = this.#questions.get(key)
    const question = known ?? { key, subscriptions: new Set(), position: now, failures: 0 }
    // A query that failed in this round is behind, so nobody can join it.
    if (question.position !== now) return
    this.#joining.delete(subscription)
    this.#questions.set(key, question)
    question.subscriptions.add(subscription)
    client.send(subscribedMessage(id, this.#deps.toWatermark(resume ?? now)))
    if (resume !== null) void this.#catchUp(subscription, resume, now)
  }

  /** Reads what was stored from the watermark of a subscription to its beginning. */
  async #catchUp(
    subscription: Subscription,
    resume: TailPosition,
    now: TailPosition,
  ): Promise<void> {
    const { client, request, ended } = subscription
    subscription.isCatchingUp = true
    try {
      const after = sinceOf(resume.blocks, now.blocks)
      const limit = request.max
      const arrived = await this.#deps.ask(client.userId, () =>
        this.#read(request, { after, now, limit }, ended.signal),
      )
      const span = joinSpans(null, { fromMs: resume.atMs, to: now, ...arrived }, request.max)
      const { missed } = subscription
      subscription.missed = missed === null ? span : joinSpans(span, missed, request.max)
      subscription.isCatchingUp = false
      this.#flush(client)
    } catch (error) {
      if (!ended.signal.aborted) this.#giveUp(subscription, error)
    }
  }

  /** Sends what the client has missed, as long as it reads; subscriptions that wait longest come first. */
  #flush(client: TailClient): void {
    const nowMs = performance.now()
    const due = [...(this.#clients.get(client)?.values() ?? [])]
      .filter((one) => isDue(one, nowMs))
      .toSorted((a, b) => a.sentAtMs - b.sentAtMs)
    for (const subscription of due) {
      const { missed, request } = subscription
      if (missed === null || client.bufferedBytes > 0) return
      const watermark = this.#deps.toWatermark(missed.to)
      if (!client.send(rowsMessage(request.id, missed, watermark))) return
      subscription.missed = null
      subscription.sentAtMs = nowMs
    }
  }
}

const isDue = ({ missed, isCatchingUp, sentAtMs }: Subscription, nowMs: number): boolean =>
  missed !== null && !isCatchingUp && (missed.matched > 0 || nowMs - sentAtMs >= IDLE_MS)

/** A shard that has lost all of its events counts from the start again, so everything there is new. */
const sinceOf = (after: Blocks, now: Blocks): Blocks => {
  const known = new Map(after)
  return now.map(([shard, block]) => {
    const since = known.get(shard) ?? 0
    return [shard, since <= block ? since : 0] as const
  })
}

const isSame = (after: Blocks, now: Blocks): boolean =>
  after.every(([, block], i) => block === now[i]?.[1])

const isPassing = (error: unknown): boolean =>
  error instanceof AppError && error.code === 'dependency_unavailable'

const tooMany = (message: string): AppError => new AppError('overloaded', message)

/** The error that subscribers of a dropped query get. */
function faultOf(error: unknown): { readonly code: string; readonly message: string } {
  if (isPatternError(error))
    return {
      code: 'validation_error',
      message: 'the query has a regular expression that RE2 does not know',
    }
  if (isPassing(error))
    return { code: 'dependency_unavailable', message: 'the query was not answered in time' }
  return { code: 'internal_error', message: 'the query cannot be answered' }
}
