import { call, pathWith } from '../lib/api.js'
import { addressOf, type Place } from '../lib/router.js'
import { hourTo } from '../lib/time.js'
import type { Row } from './rows.js'

/** The address of an event with a time range: the hour that ends with it, for the list beside it. */
export async function eventAddress({ path, params }: Place): Promise<string> {
  try {
    const { timestamp } = await call<Row>(
      pathWith(path.replace('/events', '/api/logs'), { message_cut: 1 }),
    )
    return addressOf(path, params, { ...hourTo(Date.parse(timestamp)) })
  } catch {
    return addressOf(path, params, { from: 'now-1h' })
  }
}
