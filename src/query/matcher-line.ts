/*
 * Matchers as one line, for links and for typing: `host=web-*, zone!="a, b"`. A value in quotes is
 * a JSON string; a comma or a `*` within the quotes has no special meaning.
 */

/** A condition on alerts: a field has a value, or does not have it. */
export interface Matcher {
  readonly field: string
  /** Default: `=`. */
  readonly op?: '=' | '!='
  readonly value: string
  /** Whether `*` in the value is a plain character instead of a wildcard. */
  readonly exact?: boolean
}

/** A value without quotes ends at a comma or a line end. */
const ONE = /\s*([\w.-]+)(!?=)(?:("(?:[^"\\\n]|\\.)*")[^\S\n]*|([^,\n]*))(?:[,\n]|$)/y
const EMPTY = /\s*[,\n]|\s+$/y

/** @returns null for a text that is no list of `field=value` or `field!=value` */
export function parseMatchers(text: string): readonly Matcher[] | null {
  const found: Matcher[] = []
  for (let at = 0; at < text.length;) {
    EMPTY.lastIndex = at
    if (EMPTY.test(text)) {
      at = EMPTY.lastIndex
      continue
    }
    ONE.lastIndex = at
    const one = ONE.exec(text)
    if (one === null) return null
    at = ONE.lastIndex
    const [, field = '', op, quoted, value = ''] = one
    const exact = quoted === undefined ? null : textOf(quoted)
    const given =
      exact === null ? { value: (quoted ?? value).trim() } : { value: exact, exact: true }
    found.push({ field, op: op === '!=' ? '!=' : '=', ...given })
  }
  return found.length === 0 ? null : found
}

/** @returns null for a text that is not a JSON string */
function textOf(quoted: string): string | null {
  try {
    return String(JSON.parse(quoted))
  } catch {
    return null
  }
}

/** Whether a value can be written without quotes. */
const isPlain = (value: string): boolean => !/^["\s]|\s$|[,\n\r]/.test(value)

export const printMatchers = (all: readonly Matcher[]): string =>
  all
    .map(({ field, op = '=', value, exact = false }) => {
      const isSame = isPlain(value) && !(exact && value.includes('*'))
      return `${field}${op}${isSame ? value : JSON.stringify(value)}`
    })
    .join(', ')

/** The matchers of the alerts of one group, whatever its values are. */
export const matchersOfGroup = (
  ruleId: string | null,
  group: Readonly<Record<string, string>>,
): readonly Matcher[] => [
  ...(ruleId === null ? [] : [{ field: 'rule_id', value: ruleId }]),
  ...Object.entries(group).map(([field, value]) => ({ field, value, exact: true })),
]
