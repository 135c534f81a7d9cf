/*
 * Derives the notices of a transition. Ids are computed from the content, so deriving a notice
 * again gives the same id. Receivers identify an alert by the notice's key, which its beginning and
 * end share; the status tells them apart.
 */

import { createHash } from 'node:crypto'

import type { LoggedTransition } from './alert-log.js'
import { isNotified } from './machine.js'

/** A notice of one transition to one channel. Its id is the same however often it is sent. */
export interface Notice {
  readonly id: string
  /** The key by which receivers identify the alert. */
  readonly key: string
  /**
   * transition: it announces the transition; repeat, refresh: the alert still fires (for people,
   * for Alertmanager); acknowledge: somebody takes care of it; fallback: it replaces the notice of
   * another channel.
   */
  readonly kind: 'transition' | 'repeat' | 'refresh' | 'acknowledge' | 'fallback'
  readonly channelId: string
  readonly transition: LoggedTransition
}

const idOf = (...parts: readonly (string | number)[]): string =>
  createHash('sha256').update(parts.join(' ')).digest('hex').slice(0, 32)

export const noticesOf = (transition: LoggedTransition): readonly Notice[] =>
  recipientsOf(transition).map((channelId) => ({
    id: idOf(transition.id, channelId),
    key: idOf(transition.alertId ?? transition.id, channelId),
    kind: 'transition',
    channelId,
    transition,
  }))

function recipientsOf(transition: LoggedTransition): readonly string[] {
  const { from, to, channels = [], formerChannels = [], newChannels = [] } = transition
  if (from === to) return newChannels
  if (!isNotified(transition)) return []
  if (to !== 'resolved') return channels
  return transition.tellsResolved === false ? [] : [...channels, ...formerChannels]
}

/**
 * A notice between the beginning and the end of an alert.
 *
 * @param due its kind, and the number of such notices so far
 */
export const repeatOf = (
  transition: LoggedTransition,
  channelId: string,
  due: { readonly kind: 'repeat' | 'refresh' | 'acknowledge'; readonly count: number },
): Notice => {
  const id = idOf(transition.alertId ?? transition.id, channelId, due.kind, due.count)
  return { id, key: id, kind: due.kind, channelId, transition }
}

/** The same notice for the fallback channel. */
export const fallbackOf = (notice: Notice, channelId: string): Notice => ({
  id: idOf(notice.id, channelId, 'fallback'),
  key: idOf(notice.key, channelId, 'fallback'),
  kind: 'fallback',
  channelId,
  transition: notice.transition,
})
