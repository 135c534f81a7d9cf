import { signal } from '@preact/signals'

/** The address within the page. It contains the whole state, so that a link shows the same to others. */
export interface Place {
  readonly path: string
  readonly params: URLSearchParams
}

const read = (): Place => ({
  path: location.pathname,
  params: new URLSearchParams(location.search),
})

export const place = signal<Place>(read())

addEventListener('popstate', () => {
  place.value = read()
})

interface Move {
  /** Whether the address replaces the one before in the browser's history. */
  readonly replace?: boolean
}

/** @param to a path of this page with its parameters */
export function go(to: string, { replace = false }: Move = {}): void {
  if (to === location.pathname + location.search) return
  if (replace) history.replaceState(null, '', to)
  else history.pushState(null, '', to)
  place.value = read()
}

export type Patch = Readonly<Record<string, string | null>>

/** The address of a path with the current parameters, some of them changed; null removes one. */
export function addressOf(path: string, params: URLSearchParams, patch: Patch = {}): string {
  const changed = new URLSearchParams(params)
  for (const [name, value] of Object.entries(patch)) {
    if (value === null || value === '') changed.delete(name)
    else changed.set(name, value)
  }
  // Keeps the characters of queries and times readable.
  const text = changed.toString().replaceAll('%3A', ':').replaceAll('%2C', ',')
  return text === '' ? path : `${path}?${text}`
}

export const setParams = (patch: Patch, move?: Move): void =>
  go(addressOf(place.value.path, place.value.params, patch), move)

const isPlain = ({ defaultPrevented, button, metaKey, ctrlKey, shiftKey, altKey }: MouseEvent) =>
  !defaultPrevented && button === 0 && !metaKey && !ctrlKey && !shiftKey && !altKey

/** Handles links within the page without loading it again. */
export function followLinks(event: MouseEvent): void {
  const link = event.target instanceof Element ? event.target.closest('a') : null
  if (link === null || !isPlain(event)) return
  if (link.origin !== location.origin || link.target !== '') return
  if (/^\/(?:docs|api|openapi)/.test(link.pathname) || link.hasAttribute('download')) return
  event.preventDefault()
  go(link.pathname + link.search)
}
