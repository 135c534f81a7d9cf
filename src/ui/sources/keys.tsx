import { useState } from 'preact/hooks'

import { act } from '../lib/act.js'
import { call } from '../lib/api.js'
import { Icon } from '../lib/icon.js'
import { usePaged } from '../lib/paged.js'
import { ago } from '../lib/time.js'
import { FormDialog } from '../shell/form-dialog.js'
import { namesIn } from '../shell/form.js'
import { MoreButton } from '../shell/more-button.js'
import { NewSecret } from '../shell/new-secret.js'
import { ConfirmButton } from '../shell/confirm-button.js'
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

/** The ingest keys, which can be created and deleted. */
export function Keys() {
  const list = usePaged<KeyRow>('/api/ingest-keys', { limit: 100 })
  const [isMaking, setMaking] = useState(false)
  if (list.error !== null) return <Problem of={list} />
  const end = async (key: KeyRow): Promise<void> => {
    const work = call(`/api/ingest-keys/${key.id}`, { method: 'DELETE' })
    if ((await act(work, `The key ${key.prefix}… is refused from now on.`)) !== null) list.reload()
  }
  return (
    <>
      <p class="line above-table">
        <button class="primary" onClick={() => setMaking(true)}>
          <Icon name="plus" size={14} /> Make a key
        </button>
        <span class="note">
          <a href="/sources/send">Send logs</a> shows where it goes.
        </span>
      </p>
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
            {(list.items ?? []).map((key) => (
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
                  <ConfirmButton
                    label="End …"
                    sure="End it: senders that use it are refused"
                    onSure={() => void end(key)}
                  />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {list.items?.length === 0 && <p class="note">No key yet.</p>}
      <MoreButton list={list} />
      {isMaking && <NewKey onClose={() => setMaking(false)} onMade={list.reload} />}
    </>
  )
}

interface NewKeyProps {
  readonly onClose: () => void
  readonly onMade: () => void
}

function NewKey({ onClose, onMade }: NewKeyProps) {
  const [key, setKey] = useState('')
  const submit = async (text: (name: string) => string): Promise<void> => {
    const json = { name: text('name'), sources: namesIn(text('sources')) }
    const made = await call<{ readonly key: string }>('/api/ingest-keys', { method: 'POST', json })
    setKey(made.key)
    onMade()
  }
  if (key !== '') return <NewSecret title="The key" secret={key} onClose={onClose} />
  return (
    <FormDialog title="Make an ingest key" action="Make it" onClose={onClose} onSubmit={submit}>
      <label class="field">
        Name
        <input name="name" autocomplete="off" maxLength={120} required autofocus />
      </label>
      <label class="field">
        Sends for these sources only
        <input name="sources" autocomplete="off" placeholder="all" />
      </label>
    </FormDialog>
  )
}
