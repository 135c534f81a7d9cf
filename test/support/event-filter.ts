import { toFilter, type EventFilter, type Redirects } from '../../src/events/filter.js'
import { toQuery, type EventParameters } from '../../src/events/parameters.js'
import { resolveNames, type Names } from '../../src/events/resolve.js'
import { parseQuery } from '../../src/query/parser.js'

/** The parameters of a list of events; `q` is a line. */
export type Asked = EventParameters & { readonly q?: string }

const NO_NAMES: Names = { applications: () => [], templateAliases: (id) => [id] }

/** Makes the filter that the API makes of its parameters. */
export function filterOf(
  { q = '', ...asked }: Asked,
  names: Names = NO_NAMES,
  redirects: Redirects = [],
): EventFilter {
  const { query, fault } = parseQuery(q)
  if (query === null) throw new Error(`${q}: ${fault.message}`)
  const whole = toQuery(asked, query)
  return toFilter(resolveNames(whole, names), redirects)
}
