import { useEffect, useState } from 'preact/hooks'

import { call, messageOf } from '../lib/api.js'
import { counted } from '../lib/format.js'
import { Icon } from '../lib/icon.js'
import { followKpis, kpis } from '../lib/kpis.js'
import { useLoad } from '../lib/load.js'
import { may } from '../lib/session.js'
import { copy } from '../shell/notice.js'
import { Upload } from './upload.js'
import { SHIPPERS, type ShipperName } from './shippers.js'
import { Problem } from '../shell/problem.js'

interface NewKey {
  readonly key: string
}

/** The address of the collector as the service reports it. */
interface Collector {
  readonly collector_url?: string
  readonly collector_port?: number
}

const names = Object.keys(SHIPPERS).filter((name): name is ShipperName =>
  Object.hasOwn(SHIPPERS, name),
)

/** If the page is served with TLS, a proxy serves it, and the collector has the same name unless COLLECTOR_URL is set. */
function addressOf({ collector_url: url, collector_port: port }: Collector): string {
  if (url !== undefined) return url
  const isProxied = location.protocol === 'https:' || port === undefined
  return isProxied ? location.origin : `http://${location.hostname}:${port}`
}

/** Instructions for sending logs, with a working key and a count of received messages. */
export function SendLogs() {
  const [made, setMade] = useState<NewKey | null>(null)
  const [typed, setTyped] = useState<string | null>(null)
  const loaded = useLoad('collector', (signal) =>
    call<Collector>('/api/monitoring/health', { signal }),
  )
  useEffect(followKpis, [])
  if (loaded.isLoading && loaded.error === null) return null
  const address = typed ?? addressOf(loaded.value ?? {})
  return (
    <>
      <div class="send">
        <h2>Send your first logs</h2>
        <ol class="steps">
          <li>
            <h3>A key for what sends</h3>
            <MakeKey made={made} onMade={setMade} />
          </li>
          <li>
            <h3>Where the collector is</h3>
            <input
              aria-label="Address of the collector"
              value={address}
              spellcheck={false}
              onInput={({ currentTarget }) => setTyped(currentTarget.value.trim())}
            />
            <Problem of={loaded} />
          </li>
          <li>
            <h3>Send</h3>
            <Snippet address={address} keyText={made?.key ?? 'YOUR_INGEST_KEY'} />
          </li>
          <li>
            <Received />
          </li>
        </ol>
      </div>
      {may('manager') && <Upload />}
    </>
  )
}

interface MakeKeyProps {
  readonly made: NewKey | null
  readonly onMade: (key: NewKey) => void
}

function MakeKey({ made, onMade }: MakeKeyProps) {
  const [problem, setProblem] = useState('')
  const [isBusy, setBusy] = useState(false)
  const make = (): void => {
    setBusy(true)
    const json = { name: `made on the page, ${new Date().toISOString().slice(0, 10)}` }
    call<NewKey>('/api/ingest-keys', { method: 'POST', json })
      .then(onMade, (error: unknown) => setProblem(messageOf(error)))
      .finally(() => setBusy(false))
  }
  if (made !== null)
    return (
      <p class="made-key">
        <code>{made.key}</code>
        <button class="quiet" onClick={() => void copy(made.key, 'The key is copied.')}>
          <Icon name="copy" size={14} /> Copy
        </button>
        <span class="note">It is shown this once.</span>
      </p>
    )
  if (!may('admin')) return <p class="note">An admin makes keys; the first start printed one.</p>
  return (
    <>
      <p class="made-key">
        <button class="primary" onClick={make} disabled={isBusy}>
          <Icon name="key-round" size={14} /> Make a key
        </button>
        <span class="note">or use the one that the first start printed</span>
      </p>
      {problem !== '' && <p class="problem">{problem}</p>}
    </>
  )
}

interface SnippetProps {
  readonly address: string
  readonly keyText: string
}

function Snippet({ address, keyText }: SnippetProps) {
  const [shipper, setShipper] = useState<ShipperName>('curl')
  const text = SHIPPERS[shipper].text({ address, key: keyText })
  return (
    <>
      <div class="segments" role="group" aria-label="What sends">
        {names.map((name) => (
          <button key={name} aria-pressed={name === shipper} onClick={() => setShipper(name)}>
            {SHIPPERS[name].name}
          </button>
        ))}
      </div>
      <div class="snippet">
        <pre tabIndex={0} role="region" aria-label="What to run">
          {text}
        </pre>
        <button class="quiet" onClick={() => void copy(text, 'It is copied.')}>
          <Icon name="copy" size={14} /> Copy
        </button>
      </div>
      <p class="note">{SHIPPERS[shipper].note}</p>
    </>
  )
}

/** Shows how many messages were stored since the dialog was opened. The count comes with the KPI snapshots of the WebSocket. */
function Received() {
  const total = kpis.value?.total_occurrences ?? null
  const [before] = useState<{ count: number | null }>({ count: total })
  if (before.count === null && total !== null) before.count = total
  const n = total === null || before.count === null ? 0 : total - before.count
  return (
    <p class={`received ${n > 0 ? 'some' : ''}`} role="status">
      <Icon name={n > 0 ? 'check' : 'activity'} />
      {n > 0 ? (
        <span>
          Received {counted(n, 'message')}.{' '}
          <a href="/explore?from=now-15m&to=now">{n === 1 ? 'Look at it' : 'Look at them'}</a>
        </span>
      ) : (
        'Waiting for messages. They show here without a reload.'
      )}
    </p>
  )
}
