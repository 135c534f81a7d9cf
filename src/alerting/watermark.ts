/*
 * The watermark: all messages that arrived before it are stored. For one instance it is the arrival
 * of the oldest body in processing or of the oldest record in its WAL, whichever is earlier.
 * Instances publish theirs in the shared state. One that has not for two minutes is ignored, and
 * rules do not count what is later stored from its WAL.
 */

import type { State } from '../coordination/state.js'
import { MINUTE_MS } from '../model/time.js'

const KEY = 'alerting:watermarks'
const GONE_MS = 2 * MINUTE_MS
const TRIES = 5

export interface WatermarkDeps {
  readonly state: Pick<State, 'kind' | 'get' | 'setIfAbsent' | 'compareAndSet'>
  /** The id of this instance. */
  readonly self: string
  readonly wal: {
    readonly oldestMs: number
    readonly waiting: readonly { readonly seq: number }[]
  }
  readonly pipeline: { readonly oldestMs: number }
}

type Marks = Readonly<Record<string, { readonly untilMs: number; readonly atMs: number }>>

export type Watermark = ReturnType<typeof createWatermark>

export function createWatermark({ state, self, wal, pipeline }: WatermarkDeps) {
  /** The last record that an earlier run left in the WAL. The arrival of such records is not known. */
  const left = wal.waiting.at(-1)?.seq ?? -1
  const own = (): number => {
    const nowMs = Date.now()
    const oldest = wal.waiting[0]
    if (oldest !== undefined && oldest.seq <= left) return 0
    return Math.floor(nowMs - Math.max(wal.oldestMs, pipeline.oldestMs))
  }

  /** Publishes the watermark of this instance. @returns those of all live instances */
  const exchange = async (): Promise<Marks> => {
    for (let tries = 0; tries < TRIES; tries++) {
      const atMs = Date.now()
      const text = await state.get(KEY)
      const known = text === null ? {} : (JSON.parse(text) as Marks) // written below
      const alive = Object.entries(known).filter(([, mark]) => mark.atMs > atMs - GONE_MS)
      const marks: Marks = {
        ...Object.fromEntries(alive),
        [self]: { untilMs: own(), atMs },
      }
      const next = JSON.stringify(marks)
      const isSet =
        text === null
          ? await state.setIfAbsent(KEY, next, GONE_MS)
          : await state.compareAndSet(KEY, text, next, GONE_MS)
      if (isSet) return marks
    }
    throw new Error(
      'the watermarks could not be updated, because other instances change them too often',
    )
  }

  return {
    /** Publishes the watermark of this instance and returns the earliest of all; 0 when it is not known. */
    async now(): Promise<number> {
      if (state.kind === 'in-process') return own()
      const marks = Object.values(await exchange())
      return Math.min(...marks.map(({ untilMs }) => untilMs))
    },
  }
}
