import { useState } from 'preact/hooks'

import { call, told } from '../lib/api.js'
import { useLoad } from '../lib/load.js'
import { ago } from '../lib/time.js'
import { notice } from '../shell/notice.js'
import { Sure } from '../shell/sure.js'
import { Problem } from '../shell/problem.js'

interface KeyRow {
  readonly id: string
  readonly name: string
  readonly prefix: string
  readonly sources: readonly string[] | null
  readonly auto_register: boolean
  readonly created_at: string
  readonly last_used_at: string | null
}

const agoOf = (at: string | null): string =>
  at === null ? 'never' : ago(Date.parse(at), Date.now())

/** The keys that may send, with a way to end one. */
export function Keys() {
  const [revision, setRevision] = useState(0)
  const loaded = useLoad(`keys ${revision}`, (signal) =>
    call<{ readonly items: readonly KeyRow[] }>('/api/ingest-keys?limit=200', { signal }),
  )
  const { value } = loaded
  if (loaded.error !== null) return <Problem of={loaded} />
  const end = (key: KeyRow): void => {
    call(`/api/ingest-keys/${key.id}`, { method: 'DELETE' }).then(
      () => {
        notice(`The key ${key.prefix}… is refused from now on.`)
        setRevision((n) => n + 1)
      },
      (problem: unknown) => notice(told(problem)),
    )
  }
  return (
    <div class="table-room">
      <table>
        <thead>
          <tr>
            <th>Name</th>
            <th>Begins with</th>
            <th>May send for</th>
            <th>Made</th>
            <th>Last used</th>
            <th>
              <span class="vh">End</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {(value?.items ?? []).map((key) => (
            <tr key={key.id}>
              <td class="long" title={key.name}>
                {key.name}
              </td>
              <td>
                <code>{key.prefix}…</code>
              </td>
              <td>
                {key.sources === null ? 'every source' : key.sources.join(', ')}
                {!key.auto_register && <span class="note"> that is registered</span>}
              </td>
              <td>{agoOf(key.created_at)}</td>
              <td>{agoOf(key.last_used_at)}</td>
              <td class="number">
                <Sure
                  label="End …"
                  sure="End it: what sends with it is refused"
                  onSure={() => end(key)}
                />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="note">
        A new key is made at <a href="/sources/send">Send logs</a>.
      </p>
    </div>
  )
}
