import { act } from '../lib/act.js'
import { call } from '../lib/api.js'
import { usePaged } from '../lib/paged.js'
import { MoreButton } from '../shell/more-button.js'
import { When } from '../shell/when.js'
import { OwnFactor } from './own-factor.js'
import { Problem } from '../shell/problem.js'

interface Session {
  readonly id: string
  readonly created_at: string | null
  readonly last_refreshed_at: string | null
  readonly expires_at: string
  readonly address: string | null
  readonly user_agent: string | null
  readonly is_current: boolean
}

/** The sessions of the user. */
export function Sessions() {
  const list = usePaged<Session>('/api/auth/sessions', { limit: 100 })
  if (list.error !== null) return <Problem of={list} />
  const end = (path: string, said: string): void =>
    void act(call(path, { method: 'DELETE' }), said).then(() => list.reload())
  return (
    <>
      <OwnFactor onChanged={list.reload} />
      <p class="line above-table">
        <button onClick={() => end('/api/auth/sessions', 'All other sessions have ended.')}>
          End all others
        </button>
      </p>
      <div class="table-room">
        <table>
          <thead>
            <tr>
              <th>Begun</th>
              <th>Renewed</th>
              <th>Address</th>
              <th>Browser or program</th>
              <th>
                <span class="vh">End</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {(list.items ?? []).map((session) => (
              <tr key={session.id}>
                <td>
                  <When at={session.created_at} />
                </td>
                <td>
                  <When at={session.last_refreshed_at} as="ago" />
                </td>
                <td>{session.address}</td>
                <td class="long">{session.user_agent}</td>
                <td class="number">
                  {session.is_current ? (
                    <span class="note">this one</span>
                  ) : (
                    <button
                      class="quiet"
                      onClick={() =>
                        end(`/api/auth/sessions/${session.id}`, 'The session is over.')
                      }
                    >
                      End
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <MoreButton list={list} />
    </>
  )
}
