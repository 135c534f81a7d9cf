import { closestMatch } from 'leven'

/** An environment variable that is not a setting, and the setting that was probably meant. */
export interface Misspelled {
  readonly variable: string
  readonly setting: string
}

/** Finds environment variables whose names resemble a setting; they have no effect. */
export function misspelled(
  variables: readonly string[],
  settings: readonly string[],
): readonly Misspelled[] {
  return variables
    .filter((variable) => !settings.includes(variable))
    .flatMap((variable) => {
      const setting = nearestTo(variable.toUpperCase(), settings)
      return setting === undefined ? [] : [{ variable, setting }]
    })
}

/** The name that differs in the fewest letters, at most `distance`; undefined for none. */
export const nearestOf = (
  text: string,
  names: readonly string[],
  distance: number,
): string | undefined => closestMatch(text, names, { maxDistance: distance })

/** The minimum length: shorter names resemble many variables of other programs. */
const LEAST_LETTERS = 6

function nearestTo(variable: string, names: readonly string[]): string | undefined {
  if (variable.length < LEAST_LETTERS) return undefined
  const near = nearestOf(variable, names, variable.length < 10 ? 1 : 2)
  if (near !== undefined) return near
  const words = (name: string): string => name.split('_').toSorted().join('_')
  return names.find(
    (name) =>
      // This finds a prefix of a name, such as DEDUP_WINDOW, and a name with a suffix, such as
      // JWT_SECRET_FILE.
      (variable.includes('_') && name.startsWith(`${variable}_`)) ||
      (name.includes('_') && variable.startsWith(`${name}_`)) ||
      words(variable) === words(name),
  )
}
