/** @returns undefined for a text that is not JSON */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(mayLoseDigits(text) ? withTexts(text) : text)
  } catch {
    return undefined
  }
}

/** @returns '' for undefined, and for a value that is nested too deeply for JSON.stringify */
export function rawText(value: unknown): string {
  try {
    return value === undefined ? '' : JSON.stringify(value)
  } catch {
    return ''
  }
}

/** Sixteen digits are more than a double surely has, and exponents of three digits may be beyond it. */
const mayLoseDigits = (text: string): boolean => /\d{16}|\d\.\d{15}|\d[eE][+-]?\d{3}/.test(text)

/** A text, which may lack its end so that no search for it is in vain, or a number; whatever is between them is copied. */
const TEXT_OR_NUMBER =
  /"[^"\\]*(?:\\[^][^"\\]*)*(?:"|\\?$)|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/** Makes texts of the numbers that a double cannot hold, so that they keep their digits. */
const withTexts = (text: string): string =>
  text.replace(TEXT_OR_NUMBER, (part) =>
    part.startsWith('"') || isExact(part) ? part : `"${part}"`,
  )

function isExact(number: string): boolean {
  const value = Number(number)
  if (/^-?\d+$/.test(number)) return Number.isSafeInteger(value)
  if (!Number.isFinite(value)) return false
  const [mantissa = ''] = number.split(/[eE]/)
  const digits = mantissa.replace(/[-.]/g, '').replace(/^0+/, '')
  // Fifteen significant digits survive in every double, more only if they are written again.
  return digits.length <= 15 ? value !== 0 || digits === '' : String(value) === number
}
