import { demoRecords } from './scenario.js'
import type { DemoRecord } from './scene.js'

/** The parts of the running program that the demonstration needs. */
export interface DemoTarget {
  /** The address of the collector's port. */
  readonly collector: string
  readonly isEmpty: () => Promise<boolean>
  /** Creates an ingest key that `release` deletes. */
  readonly newKey: () => Promise<{ readonly key: string; readonly release: () => Promise<void> }>
}

const BATCH = 2000

/**
 * Fills an empty installation with an hour of logs, sent through the collector like all logs.
 *
 * @returns the number of messages; null when the installation holds events already
 * @throws Error when the collector refuses them
 */
export async function fillWithDemo(target: DemoTarget, endMs: number): Promise<number | null> {
  if (!(await target.isEmpty())) return null
  const records: readonly object[] = [...demoRecords(endMs), ...BROKEN]
  const { key, release } = await target.newKey()
  try {
    for (let at = 0; at < records.length; at += BATCH)
      await send(target.collector, key, records.slice(at, at + BATCH))
  } finally {
    await release()
  }
  return records.length
}

async function send(collector: string, key: string, records: readonly object[]): Promise<void> {
  const reply = await fetch(`${collector}/ingest`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: records.map((record) => JSON.stringify(record)).join('\n'),
  })
  if (!reply.ok) throw new Error(`the collector refused the demo's messages: ${await reply.text()}`)
}

/** Records of a badly configured source, which become dead letters. */
const BROKEN: readonly Partial<DemoRecord>[] = [
  {
    source: 'legacy-billing',
    severity: 'INFO',
    message: 'invoice 8841 sent',
    timestamp: '31.02.2026 09:61',
  },
  {
    source: 'legacy-billing',
    severity: 'INFO',
    message: 'invoice 8842 sent',
    timestamp: '31.02.2026 09:62',
  },
  { source: 'legacy-billing', severity: 'INFO', host: 'billing-1' },
  { source: 'legacy-billing', severity: 'ERROR', host: 'billing-1', message: '' },
]
