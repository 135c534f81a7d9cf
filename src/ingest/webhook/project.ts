import { createHash } from 'node:crypto'
import { fieldsAt, wordAt, type Fields } from './payload.js'

const MAX_SOURCE_CHARS = 120
const DIGEST_CHARS = 12

/**
 * Returns the path of the project that a delivery is about, such as `group/subgroup/project`.
 *
 * @returns '' when the payload names no project
 */
export function projectPath(payload: Fields): string {
  const project = fieldsAt(payload, 'project')
  const repository = fieldsAt(payload, 'repository')
  return (
    cleanPath(wordAt(project, 'path_with_namespace')) ||
    cleanPath(urlPath(wordAt(project, 'web_url'))) ||
    cleanPath(urlPath(wordAt(repository, 'homepage'))) ||
    cleanPath(slashesJoined(wordAt(payload, 'project_name'))) ||
    cleanPath(slashesJoined(wordAt(repository, 'name')))
  )
}

/**
 * Returns the source of a project: `scm.<path>`, at most 120 characters. A longer path is truncated and ends in a
 * digest of the whole, so that deep groups with the same beginning have different sources.
 */
export function sourceOf(path: string): string {
  const name = `scm.${path}`
  if (name.length <= MAX_SOURCE_CHARS) return name
  const digest = createHash('sha256').update(path).digest('hex').slice(0, DIGEST_CHARS)
  const head = name.slice(0, MAX_SOURCE_CHARS - DIGEST_CHARS - 1)
  return `${wellFormed(head)}~${digest}`
}

/** Replaces half a surrogate pair, which could not be stored as the name that is registered. */
const wellFormed = (text: string): string => text.replaceAll(/\p{Surrogate}/gu, '\uFFFD')

/** Normalises `Group / Project`, as job payloads write it, to `Group/Project`. */
const slashesJoined = (name: string): string =>
  name
    .split('/')
    .map((part) => part.trim())
    .join('/')

function urlPath(url: string): string {
  return /^https?:/i.test(url) && URL.canParse(url) ? new URL(url).pathname : ''
}

function cleanPath(path: string): string {
  const bounded = wellFormed(path).replaceAll(/\p{Cc}/gu, '')
  return withoutOuterSlashes(bounded.trim()).trim()
}

function withoutOuterSlashes(path: string): string {
  let [from, to] = [0, path.length]
  while (from < to && path[from] === '/') from++
  while (from < to && path[to - 1] === '/') to--
  return path.slice(from, to)
}
