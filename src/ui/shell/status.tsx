import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

import { call } from '../lib/api.js'
import { count, counted } from '../lib/format.js'
import { useEvery } from '../lib/every.js'
import { Icon } from '../lib/icon.js'
import { askLedger, type LedgerReply } from '../lib/ledger.js'

interface Check {
  readonly status: string
  readonly detail?: string
  readonly oldest_s?: number
}

interface HealthReply {
  readonly status: 'ok' | 'degraded' | 'down'
  readonly checks: Readonly<Record<string, Check>>
}

interface Seen {
  /** Null when the request failed. */
  readonly health: HealthReply | null
  readonly openAlerts: number
  readonly ledger: LedgerReply | null
  readonly atMs: number
}

/** The last status, shared by all screens. */
const seen = signal<Seen | null>(null)

const EVERY_MS = 10_000

/** Loads the figures of the top bar, periodically and at once after a change. */
export async function refreshStatus(): Promise<void> {
  const [health, kpis, ledger] = await Promise.allSettled([
    call<HealthReply>('/api/monitoring/health'),
    call<{ readonly open_alerts: number }>('/api/kpis'),
    askLedger(),
  ])
  seen.value = {
    health: health.status === 'fulfilled' ? health.value : null,
    openAlerts: kpis.status === 'fulfilled' ? kpis.value.open_alerts : unreadAlerts(),
    ledger: ledger.status === 'fulfilled' ? ledger.value : null,
    atMs: Date.now(),
  }
}

export const unreadAlerts = (): number => seen.value?.openAlerts ?? 0

/** The time up to which messages are searchable, the health of the service, and the number of open alerts. */
export function Status() {
  useEffect(() => {
    if (seen.value === null || Date.now() - seen.value.atMs > EVERY_MS) void refreshStatus()
  }, [])
  useEvery(EVERY_MS, () => void refreshStatus())
  if (seen.value === null) return null
  const { health, openAlerts, ledger } = seen.value
  return (
    <>
      {openAlerts > 0 && (
        <a
          class="freshness warn"
          href="/alerts?show=unread"
          title={`${counted(openAlerts, 'alert')} not read yet`}
        >
          <Icon name="bell" size={13} /> {count(openAlerts)}
        </a>
      )}
      {ledger !== null && ledger.acknowledged + ledger.stored > 0 && <Balance ledger={ledger} />}
      <Freshness health={health} />
    </>
  )
}

/** Whether everything that was acknowledged is stored. */
function Balance({ ledger }: { readonly ledger: LedgerReply }) {
  const { acknowledged, stored, dead_letters: dead, waiting, difference } = ledger
  const kept = `${count(stored)} stored + ${counted(dead, 'dead letter')}`
  const off = difference < 0 ? `${count(-difference)} too many` : `${count(difference)} missing`
  return (
    <a
      class={`freshness ${difference === 0 ? '' : 'bad'}`}
      href="/overview"
      title={`${count(acknowledged)} acknowledged, ${kept}: ${off}. ${count(waiting)} waiting.`}
    >
      <Icon name="scale" size={13} /> {off}
    </a>
  )
}

function Freshness({ health }: { readonly health: HealthReply | null }) {
  if (health === null) return <span class="freshness bad">no answer</span>
  const behind = health.checks['spool']?.oldest_s ?? 0
  const ill = Object.values(health.checks).find(({ status }) => status !== 'ok')
  if (ill !== undefined)
    return (
      <a class="freshness bad" href="/admin" title={ill.detail ?? ill.status}>
        {health.status}
      </a>
    )
  return (
    <a class="freshness" href="/admin" title={`Messages are found up to ${behind} s ago`}>
      {behind === 0 ? 'up to date' : `visible to ${behind.toFixed(1)} s ago`}
    </a>
  )
}
