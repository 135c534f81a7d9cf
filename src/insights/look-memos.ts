import type { Finding } from './anomalies.js'
import type { SeriesMemo } from './training.js'

/** What a look found of a series, for the next look to take over where nothing changed. */
export interface LookMemo extends SeriesMemo {
  findings: readonly Finding[] | null
}

export const noMemo = (): LookMemo => ({ training: null, findings: null })

/** Memos of all series, kept from look to look; those of series that are gone go at the next. */
export class LookMemos {
  #startHour = 0
  #hours = ''
  #last = new Map<string, LookMemo>()
  #current = new Map<string, LookMemo>()

  /** @param hours names the hours that are looked at: what was found of others serves no more */
  begin(startHour: number, hours: string): void {
    this.#last = startHour === this.#startHour ? this.#current : new Map()
    this.#current = new Map()
    if (hours !== this.#hours) for (const memo of this.#last.values()) memo.findings = null
    this.#startHour = startHour
    this.#hours = hours
  }

  of(name: string): LookMemo {
    const memo = this.#last.get(name) ?? noMemo()
    this.#current.set(name, memo)
    return memo
  }
}
