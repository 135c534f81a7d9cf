import { useState } from 'preact/hooks'

import { act } from '../lib/act.js'
import { call } from '../lib/api.js'
import { Icon } from '../lib/icon.js'
import { usePaged } from '../lib/paged.js'
import { may, user, type User } from '../lib/session.js'
import { FormDialog } from '../shell/form-dialog.js'
import { MoreButton } from '../shell/more-button.js'
import { ConfirmSelect } from '../shell/confirm-select.js'
import { ConfirmButton } from '../shell/confirm-button.js'
import { When } from '../shell/when.js'
import { Problem } from '../shell/problem.js'

interface Person extends User {
  readonly is_active: boolean
  readonly created_at: string
  readonly last_login_at: string | null
  readonly has_second_factor: boolean
  readonly must_change_password: boolean
  /** The provider at which the user logs in; null for a local user. */
  readonly provider: string | null
}

const ROLES = ['viewer', 'manager', 'admin', 'superadmin'] as const

/** The users and their roles. */
export function Users() {
  const list = usePaged<Person>('/api/users', { limit: 100 })
  const [isAdding, setAdding] = useState(false)
  const change = (work: Promise<unknown>, said: string): void =>
    void act(work, said).then(() => list.reload())
  if (list.error !== null) return <Problem of={list} />
  return (
    <>
      <p class="line above-table">
        <button class="primary" onClick={() => setAdding(true)}>
          <Icon name="plus" size={14} /> Add a user
        </button>
      </p>
      <div class="table-room">
        <table>
          <thead>
            <tr>
              <th>E-mail</th>
              <th>Role</th>
              <th>Last login</th>
              <th>Second factor</th>
              <th>May log in</th>
              <th>
                <span class="vh">Delete</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {(list.items ?? []).map((person) => (
              <Line key={person.id} person={person} onChange={change} />
            ))}
          </tbody>
        </table>
      </div>
      <MoreButton list={list} />
      {isAdding && (
        <NewUser
          onClose={() => setAdding(false)}
          onMade={() => {
            setAdding(false)
            list.reload()
          }}
        />
      )}
    </>
  )
}

interface LineProps {
  readonly person: Person
  readonly onChange: (work: Promise<unknown>, said: string) => void
}

function Line({ person, onChange }: LineProps) {
  const { id, email, role } = person
  const isSelf = id === user.value?.id
  const path = `/api/users/${id}`
  return (
    <tr>
      <td class="long" title={email}>
        {email} {isSelf && <span class="note">you</span>}
        {person.provider !== null && <span class="note"> from {person.provider}</span>}
        {person.must_change_password && <span class="note"> has a temporary password</span>}
      </td>
      <td>
        <ConfirmSelect
          label={`Role of ${email}`}
          value={role}
          options={ROLES.map((name) => [name, name])}
          isDisabled={!may('superadmin') || isSelf || person.provider !== null}
          sure={(chosen) => `Make ${chosen}`}
          onSure={(chosen) =>
            onChange(
              call(`${path}/role`, { method: 'PUT', json: { role: chosen } }),
              `${email} is ${chosen} from the next login on.`,
            )
          }
        />
      </td>
      <td>
        <When at={person.last_login_at} as="ago" />
      </td>
      <td>
        {person.has_second_factor ? 'on' : <span class="note">off</span>}
        {person.has_second_factor && !isSelf && (
          <ConfirmButton
            label="Remove …"
            sure="Remove it: the password alone will do"
            onSure={() =>
              onChange(
                call(`${path}/second-factor`, { method: 'DELETE' }),
                `${email} logs in with the password alone.`,
              )
            }
          />
        )}
      </td>
      <td>
        <label class="switch">
          <input
            type="checkbox"
            role="switch"
            checked={person.is_active}
            disabled={isSelf}
            aria-label={`${email} may log in`}
            onChange={() =>
              onChange(
                call(path, { method: 'PATCH', json: { is_active: !person.is_active } }),
                person.is_active ? `${email} can no longer log in.` : `${email} can log in again.`,
              )
            }
          />
        </label>
      </td>
      <td class="number">
        {!isSelf && (
          <ConfirmButton
            label="Delete …"
            sure="Delete the user"
            onSure={() => onChange(call(path, { method: 'DELETE' }), `${email} is deleted.`)}
          />
        )}
      </td>
    </tr>
  )
}

interface NewUserProps {
  readonly onClose: () => void
  readonly onMade: () => void
}

function NewUser({ onClose, onMade }: NewUserProps) {
  const submit = (text: (name: string) => string): Promise<unknown> => {
    const json = {
      email: text('email'),
      password: text('password'),
      role: text('role'),
      temporary: true,
    }
    return call('/api/users', { method: 'POST', json }).then(onMade)
  }
  return (
    <FormDialog title="Add a user" action="Add" onClose={onClose} onSubmit={submit}>
      <label class="field">
        E-mail
        <input name="email" type="text" autocomplete="off" required autofocus />
      </label>
      <label class="field">
        Temporary password
        <input name="password" type="text" autocomplete="off" required spellcheck={false} />
      </label>
      <label class="field">
        Role
        <select name="role">
          {ROLES.slice(0, may('superadmin') ? 4 : 2).map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <p class="note">The first login asks for a password of their own.</p>
    </FormDialog>
  )
}
