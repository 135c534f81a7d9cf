import { SEVERITIES, type Severity } from '../../../model/event.js'
import type { RecordFeed } from '../record-feed.js'
import { levelOf } from './log-record.js'
import type { Common } from './origin.js'

/** Adds protobuf log records that `wasm/assembly/otlp.ts` can read. */
export class SimpleLogs {
  readonly #feed: RecordFeed
  #common: Common | null = null

  constructor(feed: RecordFeed) {
    this.#feed = feed
  }

  /** Takes fields of a scope between two offsets of the body. @returns the offset of the first that must be decoded */
  take(from: number, to: number, common: Common): number {
    if (common !== this.#common) this.#begin(common)
    return this.#feed.records({ kind: 'otlp', readLevel }, from, to)
  }

  #begin(common: Common): void {
    const { source, host, environment } = common.fields
    const text = (value: unknown): string => (typeof value === 'string' ? value : '')
    this.#common = common
    this.#feed.set('source', text(source))
    this.#feed.set('host', text(host))
    this.#feed.set('environment', text(environment))
    this.#feed.set('tags', Object.keys(common.tags).length === 0 ? '' : JSON.stringify(common.tags))
  }
}

/** @returns null for a level whose word becomes a tag */
function readLevel(severityNumber: number, severityText: string): Severity | null {
  const { severity, kept } = levelOf({ severityNumber, severityText }, {})
  return kept === '' ? (SEVERITIES.find((known) => known === severity) ?? null) : null
}
