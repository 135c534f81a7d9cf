import { act } from '../lib/act.js'
import { call } from '../lib/api.js'
import { may } from '../lib/session.js'
import { notice } from '../shell/notice.js'
import type { Detail, Row } from './rows.js'

/** @returns the corrected event; null when the correction was refused */
export async function setPriority(id: number, priority: Row['priority']): Promise<Detail | null> {
  if (!may('manager')) {
    notice('Setting a priority needs the role manager.', 'problem')
    return null
  }
  const work = call<Detail>(`/api/logs/${id}/priority`, { method: 'PATCH', json: { priority } })
  const done = await act(work, `${priority} now, for later events of the template too.`)
  return done?.value ?? null
}
