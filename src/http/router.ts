import { decodeSegment } from './request.js'

/** The server answers HEAD itself, and OPTIONS where no route does. */
export type RouteMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS'

export interface Routable {
  readonly method: RouteMethod
  /** Segments of fixed text or `{name}`, such as `/api/sources/{name}/toggle`. */
  readonly path: string
  /** Whether other segments may precede the path, and a slash follow it, as clients that join URLs send it. */
  readonly isJoined?: boolean
}

type Match<R> =
  | { readonly kind: 'route'; readonly route: R; readonly params: Readonly<Record<string, string>> }
  | { readonly kind: 'method_not_allowed'; readonly allow: string }
  | { readonly kind: 'not_found' }

export interface Router<R> {
  /**
   * @param method in upper case; HEAD finds the GET route
   * @param path as sent, without the query
   * @throws AppError bad_request when a path segment cannot be decoded
   */
  match(method: string, path: string): Match<R>
  /** @returns the value of an Allow header, '' when no route has this path */
  allow(path: string): string
}

interface Node<R> {
  readonly fixed: Map<string, Node<R>>
  variable: Node<R> | null
  readonly leaf: Leaf<R>
}

/** Routes by method. */
type Leaf<R> = Map<string, { readonly route: R; readonly names: readonly string[] }>

interface Found<R> {
  readonly leaf: Leaf<R>
  readonly values: readonly string[]
}

const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({})
const MAX_SEGMENTS = 32

/**
 * @throws Error when two routes have the same method and the same path apart from parameter names
 */
export function createRouter<R extends Routable>(routes: readonly R[]): Router<R> {
  const root = createNode<R>()
  const direct = new Map<string, Leaf<R>>()
  for (const route of routes) addRoute(root, direct, route)

  function find(path: string): readonly Found<R>[] {
    const parts = path.split('/')
    return parts.length > MAX_SEGMENTS ? [] : descend(root, parts.map(decodeSegment), 1)
  }
  /** A path of parameters only matches anything, so it does not prove that a path exists. */
  function known(found: readonly Found<R>[], path: string): readonly Found<R>[] {
    const segments = path.split('/').length - 1
    return found.filter(({ values }) => values.length < segments)
  }

  function match(method: string, path: string): Match<R> {
    const all = find(path)
    const found = known(all, path)
    for (const { leaf, values } of found.length > 0 ? found : all) {
      const { route, names } = leaf.get(method) ?? {}
      if (route === undefined || names === undefined) continue
      return { kind: 'route', route, params: toParams(names, values) }
    }
    if (found.length === 0) return { kind: 'not_found' }
    return { kind: 'method_not_allowed', allow: toAllow(found) }
  }
  function matchJoined(method: string, path: string): Match<R> | null {
    for (const part of partsOf(path)) {
      if (known(find(part), part).length === 0) continue
      const matched = match(method, part)
      if (matched.kind === 'route' && matched.route.isJoined === true) return matched
    }
    return null
  }

  return {
    match(method, path) {
      const entry = direct.get(path)?.get(method)
      if (entry !== undefined) return { kind: 'route', route: entry.route, params: NO_PARAMS }
      const whole = match(method, path)
      return whole.kind === 'route' ? whole : (matchJoined(method, path) ?? whole)
    },
    allow(path) {
      const whole = toAllow(known(find(path), path))
      if (whole !== '') return whole
      const joined = partsOf(path).find((part) => {
        const found = known(find(part), part)
        return found.some(({ leaf }) => [...leaf.values()].some(({ route }) => route.isJoined))
      })
      return joined === undefined ? '' : toAllow(known(find(joined), joined))
    },
  }
}

/** The path without a trailing slash, then the same without its first segments, one after the other. */
function partsOf(path: string): readonly string[] {
  if (path.split('/').length > MAX_SEGMENTS) return []
  const isOpen = path.endsWith('/')
  const whole = isOpen ? path.slice(0, -1) : path
  const parts = [...whole.matchAll(/\//g)].map(({ index }) => whole.slice(index))
  return isOpen ? [...parts, '/'] : parts
}

function toAllow<R>(found: readonly Found<R>[]): string {
  if (found.length === 0) return ''
  const methods = found.flatMap(({ leaf }) => [...leaf.keys()])
  return [...new Set(methods), 'OPTIONS'].join(', ')
}

const createNode = <R>(): Node<R> => ({
  fixed: new Map(),
  variable: null,
  leaf: new Map(),
})

function addRoute<R extends Routable>(root: Node<R>, direct: Map<string, Leaf<R>>, route: R): void {
  const names: string[] = []
  let node = root
  for (const segment of route.path.split('/').slice(1)) {
    const name = /^\{(\w+)\}$/.exec(segment)?.[1]
    if (name === undefined) {
      node = getOrAdd(node.fixed, segment)
    } else {
      names.push(name)
      node = node.variable ??= createNode<R>()
    }
  }
  const { leaf } = node
  if (leaf.has(route.method)) throw new Error(`bug: two routes for ${route.method} ${route.path}`)
  leaf.set(route.method, { route, names })
  if (route.method === 'GET') leaf.set('HEAD', { route, names })
  if (names.length === 0) direct.set(route.path, leaf)
}

function getOrAdd<R>(children: Map<string, Node<R>>, segment: string): Node<R> {
  const known = children.get(segment)
  if (known !== undefined) return known
  const node = createNode<R>()
  children.set(segment, node)
  return node
}

/** All matches, fixed text before parameters: one may lack the method that the next one has. */
function descend<R>(node: Node<R>, segments: readonly string[], depth: number): Found<R>[] {
  const segment = segments[depth]
  if (segment === undefined) return node.leaf.size === 0 ? [] : [{ leaf: node.leaf, values: [] }]
  const fixed = node.fixed.get(segment)
  const found = fixed === undefined ? [] : descend(fixed, segments, depth + 1)
  if (node.variable === null || segment === '') return found
  const below = descend(node.variable, segments, depth + 1)
  return [...found, ...below.map(({ leaf, values }) => ({ leaf, values: [segment, ...values] }))]
}

function toParams(
  names: readonly string[],
  values: readonly string[],
): Readonly<Record<string, string>> {
  if (names.length === 0) return NO_PARAMS
  return Object.fromEntries(names.map((name, i) => [name, values[i] ?? '']))
}
