/*
 * The notices that transitions make. Their ids follow from what they say, so that one that is made again is the same. Receivers
 * know a notice by its key, which the end of an alert has in common with its beginning: the status tells them apart.
 */

import { createHash } from 'node:crypto'

import type { LoggedTransition } from './log.js'
import { isNews } from './machine.js'

/** A notice of one transition to one channel. Its id is the same however often it is sent. */
export interface Notice {
  readonly id: string
  /** What receivers know it by. */
  readonly key: string
  /** Whether it is about the transition itself, says that the alert still fires (to people, to a machine) or that somebody takes care of it, or replaces another channel's. */
  readonly kind: 'transition' | 'repeat' | 'refresh' | 'acknowledge' | 'fallback'
  readonly channelId: string
  readonly transition: LoggedTransition
}

const idOf = (...parts: readonly (string | number)[]): string =>
  createHash('sha256').update(parts.join(' ')).digest('hex').slice(0, 32)

export const noticesOf = (transition: LoggedTransition): readonly Notice[] =>
  toldOf(transition).map((channelId) => ({
    id: idOf(transition.id, channelId),
    key: idOf(transition.alertId ?? transition.id, channelId),
    kind: 'transition',
    channelId,
    transition,
  }))

function toldOf(transition: LoggedTransition): readonly string[] {
  const { from, to, channels = [], formerChannels = [], newChannels = [] } = transition
  if (from === to) return newChannels
  if (!isNews(transition)) return []
  if (to !== 'resolved') return channels
  return transition.tellsResolved === false ? [] : [...channels, ...formerChannels]
}

/** A notice between the beginning and the end of an alert. @param due how often that was due */
export const repeatOf = (
  transition: LoggedTransition,
  channelId: string,
  due: { readonly kind: 'repeat' | 'refresh' | 'acknowledge'; readonly count: number },
): Notice => {
  const id = idOf(transition.alertId ?? transition.id, channelId, due.kind, due.count)
  return { id, key: id, kind: due.kind, channelId, transition }
}

/** The same notice by another channel. */
export const fallbackOf = (notice: Notice, channelId: string): Notice => ({
  id: idOf(notice.id, channelId, 'fallback'),
  key: idOf(notice.key, channelId, 'fallback'),
  kind: 'fallback',
  channelId,
  transition: notice.transition,
})
