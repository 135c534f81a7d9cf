import { call, messageOf } from '../lib/api.js'
import { copy, notice } from '../shell/notice.js'
import { ROW_MESSAGE } from './answers.js'
import type { Row } from './rows.js'

/** Copies a whole message, of which a row or the details may show only the beginning. */
export async function copyMessage({ id, message }: Pick<Row, 'id' | 'message'>): Promise<void> {
  const isCut = message.length > ROW_MESSAGE
  try {
    const whole = isCut ? (await call<Row>(`/api/logs/${id}`)).message : message
    await copy(whole, 'The message is copied.')
  } catch (error) {
    notice(messageOf(error), 'problem')
  }
}
