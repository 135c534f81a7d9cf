import { closestMatch } from 'leven'

/** A fault in a line, with its position. */
export interface QueryFault {
  /** In UTF-16 code units from the start of the line. */
  readonly position: number
  readonly length: number
  readonly message: string
  /** A replacement for the marked text; null when there is no guess. */
  readonly suggestion: string | null
}

/** Thrown within this folder only: the parser returns faults. */
export class SyntaxFault extends Error {
  readonly fault: QueryFault

  constructor(
    { start, end }: { readonly start: number; readonly end: number },
    message: string,
    suggestion: string | null = null,
  ) {
    super(message)
    this.fault = { position: start, length: end - start, message, suggestion }
  }
}

/**
 * The name most similar to a text: one edit away, or two for a text of five letters and more.
 *
 * @returns null when none is
 */
export function nearest(text: string, names: readonly string[]): string | null {
  const maxDistance = text.length < 5 ? 1 : 2
  return closestMatch(text.toLowerCase(), names, { maxDistance }) ?? null
}
