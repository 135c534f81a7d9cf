import { DELIMITER } from '../../src/model/stored-message.js'

/** Returns the variables of a message, as a worker stores them; null when the message does not match and is stored whole. */
export function cutMessage(constantText: string, message: string): string | null {
  if (constantText === '' || message.includes(DELIMITER)) return null
  const [first = '', ...literals] = constantText.split(DELIMITER)
  const last = literals.pop()
  if (last === undefined) return first === message ? '' : null
  const end = message.length - last.length
  if (!message.startsWith(first) || !message.endsWith(last)) return null
  const values: string[] = []
  let at = first.length
  for (const literal of literals) {
    const found = message.indexOf(literal, at)
    if (found < 0 || found + literal.length > end) return null
    values.push(message.slice(at, found))
    at = found + literal.length
  }
  if (at > end) return null
  values.push(message.slice(at, end))
  return values.join(DELIMITER)
}
