import { useEffect, useState } from 'preact/hooks'

import { isAbort } from './api.js'

export interface Loaded<T> {
  /** The last value; it stays while a newer one is loading, so that nothing jumps. */
  readonly value: T | null
  readonly error: unknown
  readonly isLoading: boolean
  /** The duration of the request. */
  readonly tookMs: number
  /** Loads again. */
  readonly reload: () => void
}

const NOTHING = { value: null, error: null, isLoading: true, tookMs: 0 } as const

/**
 * Loads when the key changes, and aborts the request before.
 *
 * @param key null to load nothing
 * @param turn awaited before loading
 */
export function useLoad<T>(
  key: string | null,
  load: (signal: AbortSignal) => Promise<T>,
  turn?: Promise<void>,
): Loaded<T> {
  const [loaded, setLoaded] = useState<Omit<Loaded<T>, 'reload'>>(NOTHING)
  const [revision, setRevision] = useState(0)
  useEffect(() => {
    if (key === null) return
    const controller = new AbortController()
    let startedMs = 0
    const begin = async (): Promise<T> => {
      await turn
      startedMs = performance.now()
      return load(controller.signal)
    }
    setLoaded((before) => ({ ...before, isLoading: true }))
    begin().then(
      (value) => {
        if (controller.signal.aborted) return
        const tookMs = Math.round(performance.now() - startedMs)
        setLoaded({ value, error: null, isLoading: false, tookMs })
      },
      (error: unknown) => {
        if (controller.signal.aborted || isAbort(error)) return
        setLoaded({ value: null, error, isLoading: false, tookMs: 0 })
      },
    )
    return () => controller.abort()
  }, [key, revision])
  return { ...loaded, reload: () => setRevision((n) => n + 1) }
}
