import { Named } from '../explore/named.js'
import { call, pathWith } from '../lib/api.js'
import { count } from '../lib/format.js'
import { useLoad } from '../lib/load.js'
import { usePaged } from '../lib/paged.js'
import { may } from '../lib/session.js'
import { MoreButton } from '../shell/more-button.js'
import { When } from '../shell/when.js'
import { groupText, type Channel, type Rule, type Transition } from './alert-answers.js'
import { Problem } from '../shell/problem.js'

/** The reason without the id of the silence or rule, which means nothing to people. */
const withoutId = (error: string): string =>
  error.replace(/^((?:silence|maintenance window|alert)) [\da-f]{8}-[\da-f-]{27}:/, 'by a $1:')

/** The history of a rule: its transitions with their counts, and the outcome of their notices. */
export function History({ rule }: { readonly rule: Rule }) {
  const list = usePaged<Transition>(`/api/alert-rules/${rule.id}/history`, { limit: 50 })
  // Only managers may read channels.
  const channels = useLoad(may('manager') ? 'channels' : null, (signal) =>
    call<{ readonly items: readonly Channel[] }>('/api/notification-channels?limit=200', {
      signal,
    }),
  )
  const channelName = (id: string): string =>
    channels.value?.items.find((one) => one.id === id)?.name ?? `channel ${id.slice(0, 8)}`
  return (
    <section class="card">
      <h2>History</h2>
      <Problem of={list} />
      {list.items?.length === 0 && <p class="note">It has not fired yet.</p>}
      <ol class="history">
        {(list.items ?? []).map((one) => (
          <li key={one.id}>
            <p>
              <span class={`state ${one.to}`}>{one.to}</span> <When at={one.at} />{' '}
              <Named text={groupText(one.group)} />{' '}
              {one.value !== null && (
                <a
                  href={pathWith('/explore', {
                    q: one.q,
                    from: one.window_from,
                    to: one.window_to,
                  })}
                >
                  {count(one.value)}
                </a>
              )}
              {one.is_flapping && <span class="note"> it flaps</span>}
            </p>
            {one.reason !== null && <p class="note">{one.reason}</p>}
            {one.notices.map((sent) => (
              <p key={sent.id} class="note">
                notice to {channelName(sent.channel_id)}{' '}
                <span class={`state ${sent.outcome}`}>{sent.outcome}</span>
                {sent.attempts > 1 && ` after ${sent.attempts} tries`}
                {sent.error !== null && ` ${withoutId(sent.error)}`}
              </p>
            ))}
          </li>
        ))}
      </ol>
      <MoreButton list={list} />
    </section>
  )
}
