import type { TObject, TSchema } from '@sinclair/typebox'

/** A word that occurs in hostile values only. */
export const MARK = 'zq9x'

/** Texts of injection attacks, one for each context of a value. */
export const HOSTILE: readonly string[] = [
  `${MARK}' OR 1=1 --`,
  `${MARK}' OR '1'='1`,
  `${MARK}'); DROP TABLE canary; --`,
  `${MARK}"; DROP TABLE "canary"; --`,
  `${MARK}\\' OR 1=1 -- `,
  `${MARK}\\`,
  '\\N',
  `{${MARK}:String}`,
  '{source:String}',
  `${MARK}' UNION ALL SELECT name FROM system.tables /*`,
  `${MARK}' FORMAT CSV SETTINGS max_execution_time = 1 --`,
  `\`${MARK}\``,
  `$$${MARK}$$`,
  `${MARK}\0x`,
  `${MARK}\r\nX-Injected: 1\r\n\r\n<html>`,
  `${MARK}\tx\ny`,
  `../../../../etc/passwd/${MARK}`,
  `..%2f..%2f${MARK}%00`,
  `file('/etc/passwd', 'LineAsString') ${MARK}`,
  `${MARK}%_*?[a-z]`,
  `${MARK}＇ʼ\u2028\u202e\ufeff\u{1f600}ﬀİ`,
  '__proto__',
  'constructor',
  `${MARK}%s%n%x{0}\${7*7}#{7*7}{{7*7}}<%= 7*7 %>`,
  `<script>alert('${MARK}')</script>`,
  `${MARK}${'A'.repeat(5_000)}`,
]

/** Values for numbers, times and enumerations, which must be refused. */
export const ODD: readonly string[] = [
  `1 OR 1=1 ${MARK}`,
  '1e309',
  '-1',
  '9'.repeat(400),
  "2026-01-01' OR '1'='1",
  '{limit:UInt32}',
  '__proto__',
  'NaN',
]

/**
 * Every sixth value, from another one at each place, so that each value reaches a sixth of all places and each place has
 * values of several contexts. With INJECTION=whole every place has every value.
 */
export const shareOf = (values: readonly string[], place: number): readonly string[] =>
  process.env['INJECTION'] === 'whole' ? values : values.filter((_, i) => (i + place) % 6 === 0)

/** The paths of all values of a body, and whether each is free text. */
export function placesOf(
  schema: TSchema | TObject,
  path: readonly string[] = [],
): [string[], boolean][] {
  const choices: TSchema[] = schema['anyOf'] ?? [schema]
  return choices.flatMap((choice): [string[], boolean][] => {
    if (choice['type'] === 'object' && choice['properties'] !== undefined)
      return Object.entries<TSchema>(choice['properties']).flatMap(([name, property]) =>
        placesOf(property, [...path, name]),
      )
    if (choice['type'] === 'array') return placesOf(choice['items'], [...path, '0'])
    if (choice['type'] === 'null' || choice['const'] !== undefined) return [[[...path], false]]
    return [[[...path], choice['type'] === 'string' && choice['format'] === undefined]]
  })
}

/** Requests to one route run concurrently unless they change something. */
export async function inTurn<T>(
  items: readonly T[],
  width: number,
  run: (item: T) => Promise<void>,
) {
  const queue = items.values()
  const worker = async (): Promise<void> => {
    for (const item of queue) await run(item)
  }
  await Promise.all(Array.from({ length: width }, worker))
}
