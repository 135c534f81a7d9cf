import { useEffect, useState } from 'preact/hooks'

import { call, isAbort, pathWith, type Params } from './api.js'

interface Page<T> {
  readonly items: readonly T[]
  readonly next_cursor: string | null
}

export interface Paged<T> {
  /** Null before the first page. */
  readonly items: readonly T[] | null
  readonly error: unknown
  readonly hasMore: boolean
  readonly more: () => void
  readonly reload: () => void
}

/** Reads a list page by page. The shown items stay until newer ones are loaded. */
export function usePaged<T>(path: string, params: Params = {}): Paged<T> {
  const [revision, setRevision] = useState(0)
  const [page, setPage] = useState<Page<T> | null>(null)
  const [error, setError] = useState<unknown>(null)
  const first = pathWith(path, params)
  useEffect(() => {
    const controller = new AbortController()
    call<Page<T>>(first, { signal: controller.signal }).then(
      (found) => {
        setPage(found)
        setError(null)
      },
      (problem: unknown) => {
        if (!controller.signal.aborted && !isAbort(problem)) setError(problem)
      },
    )
    return () => controller.abort()
  }, [first, revision])
  const cursor = page?.next_cursor ?? null
  const more = (): void => {
    if (page === null || cursor === null) return
    call<Page<T>>(pathWith(path, { ...params, cursor })).then(
      ({ items, next_cursor: next }) =>
        setPage({ items: [...page.items, ...items], next_cursor: next }),
      setError,
    )
  }
  return {
    items: page?.items ?? null,
    error,
    hasMore: cursor !== null,
    more,
    reload: () => setRevision((n) => n + 1),
  }
}
