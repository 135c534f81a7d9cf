type Listener = (message: string) => void

/** The listeners of each channel within this process. */
export interface Listeners {
  /** @returns unsubscribes, and says whether the channel has no listener left */
  readonly add: (channel: string, listener: Listener) => () => boolean
  readonly deliver: (channel: string, message: string) => void
  readonly channels: () => readonly string[]
  readonly clear: () => void
}

/** @param onError called when a listener throws; the others still get the message */
export function createListeners(onError: (error: unknown) => void): Listeners {
  const groups = new Map<string, Set<Listener>>()
  return {
    add: (channel, listener) => {
      // A new function, so that one listener may be added twice.
      const own: Listener = (message) => listener(message)
      groups.set(channel, (groups.get(channel) ?? new Set()).add(own))
      return () => {
        const group = groups.get(channel)
        if (group?.delete(own) !== true || group.size > 0) return false
        return groups.delete(channel)
      }
    },
    deliver: (channel, message) => {
      for (const listener of groups.get(channel) ?? []) {
        try {
          listener(message)
        } catch (error) {
          onError(error)
        }
      }
    },
    channels: () => [...groups.keys()],
    clear: () => groups.clear(),
  }
}
