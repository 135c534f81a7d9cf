import { useState } from 'preact/hooks'

import { act } from '../lib/act.js'
import { call } from '../lib/api.js'
import { Icon } from '../lib/icon.js'
import { usePaged } from '../lib/paged.js'
import { FormDialog } from '../shell/form-dialog.js'
import { MoreButton } from '../shell/more-button.js'
import { ConfirmButton } from '../shell/confirm-button.js'
import { channelKind, type Channel } from './alert-answers.js'
import { Problem } from '../shell/problem.js'

interface Field {
  readonly key: 'url' | 'secret' | 'channel' | 'to'
  readonly label: string
  readonly isOptional?: true
}

/** The form fields of each kind, in the order in which the kinds are listed. */
const FIELDS: Readonly<Record<string, readonly Field[]>> = {
  webhook: [
    { key: 'url', label: 'URL' },
    { key: 'secret', label: 'Secret that signs (optional)', isOptional: true },
  ],
  email: [{ key: 'to', label: 'Addresses, with commas between' }],
  slack_bot: [
    { key: 'channel', label: 'Channel, by its id or #name' },
    { key: 'secret', label: 'Bot token' },
  ],
  slack: [{ key: 'secret', label: 'URL of the incoming webhook' }],
  teams: [{ key: 'secret', label: 'URL of the workflow' }],
  pagerduty: [{ key: 'secret', label: 'Routing key' }],
  alertmanager: [{ key: 'url', label: 'URL, without /api/v2' }],
}

/** The browser's validation of an address. */
const URL_FORM = { pattern: 'https?://.+', title: 'http:// or https://', placeholder: 'https://…' }

interface TestReply {
  readonly outcome: string
  readonly status: number | null
  readonly latency_ms: number
  readonly error: string | null
  readonly request: string | null
}

interface Tested {
  readonly id: string
  /** Null until the reply arrives. */
  readonly reply: TestReply | null
}

const outcomeOf = ({ outcome, status, latency_ms: ms, error }: TestReply): string =>
  `${outcome}${status === null ? '' : ` with ${status}`} in ${ms} ms${error === null ? '' : `, ${error}`}`

/** The channels of notices, with a test of each. */
export function Channels() {
  const list = usePaged<Channel>('/api/notification-channels', { limit: 200 })
  const [tested, setTested] = useState<Tested | null>(null)
  const [edited, setEdited] = useState<Channel | 'new' | null>(null)
  if (list.error !== null) return <Problem of={list} />
  const test = ({ id }: Channel): void => {
    setTested({ id, reply: null })
    void act(call<TestReply>(`/api/notification-channels/${id}/test`, { method: 'POST' }), '').then(
      (done) => setTested(done === null ? null : { id, reply: done.value }),
    )
  }
  return (
    <>
      <p class="line above-table">
        <button class="primary" onClick={() => setEdited('new')}>
          <Icon name="plus" size={14} /> Add a channel
        </button>
      </p>
      {list.items?.length === 0 && (
        <div class="nothing">
          <Icon name="bell" size={22} />
          <h2>No channel</h2>
          <p>A channel tells a chat, a pager or a program of yours when a rule fires.</p>
        </div>
      )}
      {list.items !== null && list.items.length > 0 && (
        <div class="table-room">
          <table>
            <thead>
              <tr>
                <th>Name</th>
                <th>Kind</th>
                <th>To</th>
                <th>
                  <span class="vh">Test, change, delete</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {list.items.map((channel) => (
                <tr key={channel.id}>
                  <td class="long" title={channel.name}>
                    {channel.name} {!channel.enabled && <span class="note">off</span>}
                    {tested?.id === channel.id && <Outcome reply={tested.reply} />}
                    {channel.failing !== null && (
                      <>
                        <span class="state firing">does not deliver</span>
                        <p class="note why-not">{channel.failing.error}</p>
                      </>
                    )}
                  </td>
                  <td>
                    <span class={channel.type === null ? 'bad' : ''}>
                      {channelKind(channel.type)}
                    </span>
                  </td>
                  <td class="long">
                    {channel.to?.join(', ') ?? channel.channel ?? channel.url ?? (
                      <span class="note">secret</span>
                    )}
                  </td>
                  <td class="number">
                    <button class="quiet" onClick={() => test(channel)}>
                      Test
                    </button>
                    <button class="quiet" onClick={() => setEdited(channel)}>
                      Change
                    </button>
                    <ConfirmButton
                      label="Delete …"
                      sure="Delete the channel"
                      onSure={() =>
                        void act(
                          call(`/api/notification-channels/${channel.id}`, { method: 'DELETE' }),
                          `${channel.name} is deleted.`,
                        ).then(() => list.reload())
                      }
                    />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <MoreButton list={list} />
      {edited !== null && (
        <ChannelForm
          channel={edited === 'new' ? null : edited}
          onClose={() => setEdited(null)}
          onSaved={() => {
            setEdited(null)
            list.reload()
          }}
        />
      )}
    </>
  )
}

/** The request of a test and the reply to it. */
const Outcome = ({ reply }: { readonly reply: TestReply | null }) => (
  <div class="tested" role="status">
    <span class={`state ${reply?.outcome ?? 'pending'}`}>
      {reply === null ? 'testing …' : outcomeOf(reply)}
    </span>
    {reply?.request != null && (
      <details>
        <summary>What was sent</summary>
        <pre tabIndex={0}>{reply.request}</pre>
      </details>
    )}
  </div>
)

interface ChannelFormProps {
  readonly channel: Channel | null
  readonly onClose: () => void
  readonly onSaved: () => void
}

function ChannelForm({ channel, onClose, onSaved }: ChannelFormProps) {
  const [type, setType] = useState(channel?.type ?? 'webhook')
  const fields = FIELDS[type] ?? []
  const isKept = channel?.has_secret === true && channel.type === type
  const submit = (text: (name: string) => string): Promise<unknown> => {
    const target: Record<string, unknown> = { type }
    // A URL that is not the default one, such as that of another Slack server.
    if (channel?.type === type && channel.url !== null) target['url'] = channel.url
    for (const { key } of fields) {
      const value = text(key)
      if (value !== '') target[key] = key === 'to' ? value.split(/[\s,;]+/).filter(Boolean) : value
    }
    const { fallback = null, max_per_minute: most = null } = channel ?? {}
    const json = {
      name: text('name'),
      enabled: channel?.enabled ?? true,
      target,
      ...(fallback === null ? {} : { fallback }),
      ...(most === null ? {} : { max_per_minute: most }),
      ...(text('template').trim() === '' ? {} : { template: text('template') }),
    }
    const path = `/api/notification-channels${channel === null ? '' : `/${channel.id}`}`
    return call(path, { method: channel === null ? 'POST' : 'PUT', json }).then(onSaved)
  }
  return (
    <FormDialog
      title={channel === null ? 'Add a channel' : `Change ${channel.name}`}
      action="Save"
      onClose={onClose}
      onSubmit={submit}
    >
      <label class="field">
        Name
        <input name="name" defaultValue={channel?.name ?? ''} required maxLength={120} autofocus />
      </label>
      <label class="field">
        Kind
        <select value={type} onChange={({ currentTarget: { value } }) => setType(value)}>
          {Object.keys(FIELDS).map((kind) => (
            <option key={kind} value={kind}>
              {channelKind(kind)}
            </option>
          ))}
        </select>
      </label>
      {fields.map(({ key, label, isOptional }) => (
        <label class="field" key={`${type} ${key}`}>
          {label}
          {key === 'secret' ? (
            <input
              name={key}
              type="password"
              autocomplete="off"
              required={isOptional !== true && !isKept}
            />
          ) : (
            <input
              name={key}
              {...(key === 'url' ? URL_FORM : {})}
              defaultValue={channel?.type === type ? present(channel, key) : ''}
              required
            />
          )}
        </label>
      ))}
      {isKept && <p class="note">The present secret stays when none is entered.</p>}
      <details open={channel?.template != null}>
        <summary>Message in your words</summary>
        <label class="field">
          <span>
            A template (<a href="/docs/alerts#channels">names</a>); empty for the usual message
          </span>
          <textarea
            name="template"
            class="mono"
            rows={4}
            maxLength={4000}
            spellcheck={false}
            defaultValue={channel?.template ?? ''}
            placeholder={'{{alert.name}} on {{group.host}}: {{value}}\n{{samples}}'}
          />
        </label>
      </details>
    </FormDialog>
  )
}

const present = (channel: Channel, key: Exclude<Field['key'], 'secret'>): string =>
  key === 'to' ? (channel.to?.join(', ') ?? '') : (channel[key] ?? '')
