/** A piece of a message, and whether it is a variable of its template. */
export interface Piece {
  readonly text: string
  readonly isVariable: boolean
}

const VALUE = '<*>'
// oxlint-disable-next-line no-control-regex -- colours of terminals are what is taken out
const ANSI = /\u001b\[[0-9;?]*[ -/]*[@-~]/g

/** Characters that change the direction of the text after them. */
const TURNS = /[\u202a-\u202e\u2066-\u2069]/g

/** A message as one line of a row: without terminal colours, with visible direction characters, and truncated. */
export const oneLine = (message: string, most = 800): string =>
  (message.length > most ? message.slice(0, most) : message)
    .replaceAll(ANSI, '')
    .replaceAll(TURNS, (turn) => `‹U+${turn.charCodeAt(0).toString(16).toUpperCase()}›`)

/** Splits a message by the constant text of its template; a message that does not fit stays whole. */
export function pieces(message: string, template: string): readonly Piece[] {
  const constants = template.split(VALUE)
  const [head = ''] = constants
  if (constants.length < 2 || !message.startsWith(head))
    return [{ text: message, isVariable: false }]
  const found: Piece[] = [{ text: head, isVariable: false }]
  let at = head.length
  for (const [i, constant] of constants.slice(1).entries()) {
    const isLast = i === constants.length - 2
    const next = constant === '' && isLast ? message.length : message.indexOf(constant, at)
    if (next === -1 || (constant === '' && !isLast)) break
    found.push({ text: message.slice(at, next), isVariable: true })
    found.push({ text: constant, isVariable: false })
    at = next + constant.length
  }
  if (at < message.length) found.push({ text: message.slice(at), isVariable: false })
  return found.filter(({ text }) => text !== '')
}

/** The text of a template split at its variables. */
export const templatePieces = (template: string): readonly Piece[] =>
  template
    .split(/(<\*>)/)
    .filter((text) => text !== '')
    .map((text) => ({ text: text === VALUE ? '∗' : text, isVariable: text === VALUE }))
