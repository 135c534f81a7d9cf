/*
 * The watermark: everything that arrived before it is stored. For one instance it is the arrival of the oldest body that is being
 * processed, or of the oldest record in its WAL, whichever is earlier. Instances tell each other in the shared state; one that is silent for two
 * minutes is gone, and what is left in its WAL is not counted by rules when it is stored later.
 */

import type { State } from '../coordination/state.js'
import { MINUTE_MS } from '../model/time.js'

const KEY = 'alerting:watermarks'
const GONE_MS = 2 * MINUTE_MS
const TRIES = 5

export interface WatermarkDeps {
  readonly state: Pick<State, 'kind' | 'get' | 'setIfAbsent' | 'compareAndSet'>
  readonly instanceId: string
  readonly wal: {
    readonly oldestMs: number
    readonly waiting: readonly { readonly seq: number }[]
  }
  readonly pipeline: { readonly oldestMs: number }
}

type Marks = Readonly<Record<string, { readonly untilMs: number; readonly atMs: number }>>

export type Watermark = ReturnType<typeof createWatermark>

export function createWatermark({ state, instanceId, wal, pipeline }: WatermarkDeps) {
  /** It is not known when the records arrived that an earlier run left in the WAL. */
  const left = wal.waiting.at(-1)?.seq ?? -1
  const own = (): number => {
    const nowMs = Date.now()
    const oldest = wal.waiting[0]
    if (oldest !== undefined && oldest.seq <= left) return 0
    return Math.floor(nowMs - Math.max(wal.oldestMs, pipeline.oldestMs))
  }

  /** @returns the marks of all instances that are alive */
  const exchange = async (): Promise<Marks> => {
    for (let tries = 0; tries < TRIES; tries++) {
      const atMs = Date.now()
      const text = await state.get(KEY)
      const known = text === null ? {} : (JSON.parse(text) as Marks) // written below
      const alive = Object.entries(known).filter(([, mark]) => mark.atMs > atMs - GONE_MS)
      const marks: Marks = {
        ...Object.fromEntries(alive),
        [instanceId]: { untilMs: own(), atMs },
      }
      const next = JSON.stringify(marks)
      const isSet =
        text === null
          ? await state.setIfAbsent(KEY, next, GONE_MS)
          : await state.compareAndSet(KEY, text, next, GONE_MS)
      if (isSet) return marks
    }
    throw new Error('other instances change the watermarks all the time')
  }

  return {
    /** Tells the other instances, and gives the least mark of all; 0 when it is not known. */
    async now(): Promise<number> {
      if (state.kind === 'in-process') return own()
      const marks = Object.values(await exchange())
      return Math.min(...marks.map(({ untilMs }) => untilMs))
    },
  }
}
