import { pathWith, told } from '../lib/api.js'
import { count } from '../lib/format.js'
import { usePaged } from '../lib/paged.js'
import { MoreButton } from '../shell/more-button.js'
import { When } from '../shell/when.js'
import { groupText, type Rule, type Transition } from './alert-answers.js'

/** What a rule decided, on which counts, and how the notices of it went. */
export function History({ rule }: { readonly rule: Rule }) {
  const list = usePaged<Transition>(`/api/alert-rules/${rule.id}/history`, { limit: 50 })
  return (
    <section class="card">
      <h2>History</h2>
      {list.error !== null && <p class="problem">{told(list.error)}</p>}
      {list.items?.length === 0 && <p class="note">It has not fired yet.</p>}
      <ol class="history">
        {(list.items ?? []).map((one) => (
          <li key={one.id}>
            <p>
              <span class={`state ${one.to}`}>{one.to}</span> <When at={one.at} />{' '}
              {groupText(one.group)}{' '}
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
                notice <span class={`state ${sent.outcome}`}>{sent.outcome}</span>
                {sent.attempts > 1 && ` after ${sent.attempts} tries`}
                {sent.error !== null && `: ${sent.error}`}
              </p>
            ))}
          </li>
        ))}
      </ol>
      <MoreButton list={list} />
    </section>
  )
}
