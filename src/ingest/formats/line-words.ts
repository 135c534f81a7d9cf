import { EVENT_TYPES, SEVERITIES } from '../../model/event.js'
import { aliasesOf, comparedName, isTagHolder } from './aliases.js'
import { levelOf, withSeverityText } from './canonical.js'
import { sourceProblem } from './draft.js'

/** The meanings of types and levels. The encoder caches the result for each distinct word. */

export const maySourceBe = (text: string): boolean => sourceProblem(text) === null

/** @returns index into EVENT_TYPES, -1 for none of them */
export const typeIndex = (text: string): number => EVENT_TYPES.findIndex((type) => type === text)

/** Members that affect the meaning of others or are no tags, in compared form. */
const OTHER_NAMES: ReadonlySet<string> = new Set(
  'levelname levelno eventid winlog sourcetype ddtags tags schemaversion attributes month date day'.split(
    ' ',
  ),
)

/** Whether a member of this name is always a tag, whatever its value. */
export function isTagName(text: string): boolean {
  const name = comparedName(text)
  const isKnown = aliasesOf(name).length > 0 || isTagHolder(name) || OTHER_NAMES.has(name)
  return !isKnown && /^[A-Za-z]/.test(text)
}

export interface LevelWord {
  /** Index into SEVERITIES, null = the word names no level. */
  readonly severity: number | null
  /** JSON of the tags with the producer's own word, '' = none. */
  readonly tags: string
}

export function readLevelWord(text: string): LevelWord {
  const severity = levelOf(text) ?? null
  const tags = withSeverityText(null, text)
  return {
    severity: severity === null ? null : SEVERITIES.indexOf(severity),
    tags: tags === null ? '' : JSON.stringify(tags),
  }
}
