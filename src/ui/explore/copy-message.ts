import { call, told } from '../lib/api.js'
import { copy, notice } from '../shell/notice.js'
import { ROW_MESSAGE } from './answers.js'
import type { Row } from './rows.js'

/** Copies all of a message, of which a row or the drawer may have the beginning only. */
export async function copyMessage({ id, message }: Pick<Row, 'id' | 'message'>): Promise<void> {
  const isCut = message.length > ROW_MESSAGE
  try {
    const whole = isCut ? (await call<Row>(`/api/logs/${id}`)).message : message
    await copy(whole, 'The message is copied.')
  } catch (error) {
    notice(told(error), 'problem')
  }
}
