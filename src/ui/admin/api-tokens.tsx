import { useEffect, useState } from 'preact/hooks'

import { act } from '../lib/act.js'
import { call } from '../lib/api.js'
import { Icon } from '../lib/icon.js'
import { usePaged } from '../lib/paged.js'
import { learnPeople, personName } from '../lib/people.js'
import { may } from '../lib/session.js'
import { FormDialog } from '../shell/form-dialog.js'
import { namesIn } from '../shell/form.js'
import { MoreButton } from '../shell/more-button.js'
import { NewSecret } from '../shell/new-secret.js'
import { ConfirmButton } from '../shell/confirm-button.js'
import { When } from '../shell/when.js'
import { Problem } from '../shell/problem.js'

interface TokenRow {
  readonly id: string
  readonly name: string
  readonly prefix: string
  readonly role: string
  readonly sources: readonly string[] | null
  readonly expires_at: string | null
  readonly created_by: string
  readonly last_used_at: string | null
}

/** The API tokens of scripts and dashboards. */
export function ApiTokens() {
  const list = usePaged<TokenRow>('/api/api-tokens', { limit: 100 })
  const [isMaking, setMaking] = useState(false)
  useEffect(learnPeople, [])
  if (list.error !== null) return <Problem of={list} />
  return (
    <>
      <p class="line above-table">
        <button class="primary" onClick={() => setMaking(true)}>
          <Icon name="plus" size={14} /> Make a token
        </button>
        <span class="note">
          Scripts and dashboards send it as <code>Authorization: Bearer …</code>
        </span>
      </p>
      <div class="table-room">
        <table>
          <thead>
            <tr>
              <th>Name</th>
              <th>Begins with</th>
              <th>Role</th>
              <th>May read</th>
              <th>Ends</th>
              <th>Made by</th>
              <th>Last used</th>
              <th>
                <span class="vh">Revoke</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {(list.items ?? []).map((token) => (
              <Line key={token.id} token={token} onRevoked={list.reload} />
            ))}
          </tbody>
        </table>
        {list.items?.length === 0 && <p class="note">No token yet.</p>}
      </div>
      <MoreButton list={list} />
      {isMaking && <NewToken onClose={() => setMaking(false)} onMade={list.reload} />}
    </>
  )
}

interface LineProps {
  readonly token: TokenRow
  readonly onRevoked: () => void
}

function Line({ token, onRevoked }: LineProps) {
  const revoke = async (): Promise<void> => {
    const work = call(`/api/api-tokens/${token.id}`, { method: 'DELETE' })
    if ((await act(work, `The token ${token.name} is refused from now on.`)) !== null) onRevoked()
  }
  return (
    <tr>
      <td class="long" title={token.name}>
        {token.name}
      </td>
      <td>
        <code>{token.prefix}…</code>
      </td>
      <td>{token.role}</td>
      <td>{token.sources === null ? 'every source' : token.sources.join(', ')}</td>
      <td>
        <When at={token.expires_at} />
      </td>
      <td>{personName(token.created_by)}</td>
      <td>
        <When at={token.last_used_at} as="ago" />
      </td>
      <td class="number">
        <ConfirmButton
          label="Revoke …"
          sure="Revoke it: what calls with it is refused"
          onSure={() => void revoke()}
        />
      </td>
    </tr>
  )
}

const ENDS = [
  ['now+90d', 'in 90 days'],
  ['now+30d', 'in 30 days'],
  ['now+365d', 'in a year'],
  ['', 'never'],
] as const

interface NewTokenProps {
  readonly onClose: () => void
  readonly onMade: () => void
}

function NewToken({ onClose, onMade }: NewTokenProps) {
  const [token, setToken] = useState('')
  const submit = async (text: (name: string) => string): Promise<void> => {
    const json = {
      name: text('name'),
      role: text('role'),
      sources: namesIn(text('sources')),
      expires_at: text('end') === '' ? null : text('end'),
    }
    const made = await call<{ readonly token: string }>('/api/api-tokens', { method: 'POST', json })
    setToken(made.token)
    onMade()
  }
  if (token !== '') return <NewSecret title="The token" secret={token} onClose={onClose} />
  return (
    <FormDialog title="Make an API token" action="Make it" onClose={onClose} onSubmit={submit}>
      <label class="field">
        Name
        <input name="name" type="text" autocomplete="off" maxLength={120} required autofocus />
      </label>
      <label class="field">
        Role
        <select name="role">
          {['viewer', 'manager', ...(may('superadmin') ? ['admin', 'superadmin'] : [])].map(
            (role) => (
              <option key={role}>{role}</option>
            ),
          )}
        </select>
      </label>
      <label class="field">
        Reads these sources only
        <input name="sources" type="text" autocomplete="off" placeholder="all" />
      </label>
      <label class="field">
        Ends
        <select name="end">
          {ENDS.map(([end, name]) => (
            <option key={name} value={end}>
              {name}
            </option>
          ))}
        </select>
      </label>
    </FormDialog>
  )
}
