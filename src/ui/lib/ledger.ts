import { call } from './api.js'

/** The balance of the messages received from `since` to `until`: acknowledged = stored + dead letters + difference. */
export interface LedgerReply {
  readonly since: string
  readonly until: string
  readonly acknowledged: number
  readonly stored: number
  readonly dead_letters: number
  readonly waiting: number
  readonly difference: number
}

export const askLedger = (signal?: AbortSignal): Promise<LedgerReply> =>
  call<LedgerReply>('/api/analytics/ledger', signal === undefined ? {} : { signal })
