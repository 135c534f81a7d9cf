import type { DecodeContext } from '../../../model/event.js'
import { MAX_CHARS, usableSource } from '../../formats/draft.js'
import type { JsonRecord } from '../../formats/json-value.js'
import type { Origin } from './request.js'

/** The fields and tags that all items of one scope have. */
export interface Common {
  readonly fields: JsonRecord
  readonly tags: JsonRecord
}

const HOST_NAMES = ['host.name', 'k8s.node.name'] as const
const ENVIRONMENT_NAMES = ['deployment.environment.name', 'deployment.environment'] as const

/** Maps a resource to source, host and environment; its other attributes are tags under `resource.`. */
export function commonOf({ resource, scope }: Origin, { requestSource }: DecodeContext): Common {
  const tags: JsonRecord = {}
  const taken = new Set<string>()
  const take = (names: readonly string[], maxChars: number): string => {
    for (const name of names) {
      const value = resource[name]
      if (typeof value !== 'string' || value === '' || value.length > maxChars) continue
      taken.add(name)
      return value
    }
    return ''
  }
  const isNamed = requestSource === '' && usableSource(resource['service.name']) !== ''
  const source = isNamed ? take(['service.name'], Infinity) : requestSource
  const host = take(HOST_NAMES, MAX_CHARS.host)
  const environment = take(ENVIRONMENT_NAMES, MAX_CHARS.environment)
  for (const [name, value] of Object.entries(resource))
    if (!taken.has(name)) tags[`resource.${name}`] = value
  if (scope !== '') tags['scope'] = scope
  return { fields: { source, host, environment }, tags }
}

/** Calls `make` once for the items of a scope, which follow each other. */
export function perOrigin<T>(make: (origin: Origin) => T): (origin: Origin) => T {
  let last: { readonly origin: Origin; readonly made: T } | null = null
  return (origin) => {
    if (last?.origin !== origin) last = { origin, made: make(origin) }
    return last.made
  }
}
