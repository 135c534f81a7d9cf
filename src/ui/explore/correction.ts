import { useRef, useState } from 'preact/hooks'

import { call, told } from '../lib/api.js'
import { may } from '../lib/session.js'
import { notice } from '../shell/notice.js'
import type { Detail, Row } from './rows.js'

export interface Correction {
  /** Counts the corrections, so that what shows an event reads it again. */
  readonly revision: number
  readonly correct: (event: Pick<Row, 'id'>, priority: Row['priority']) => void
  /** Called with each event as it is after its correction. */
  readonly onCorrected: { current: ((row: Row) => void) | null }
}

/** Sets priorities by hand. */
export function useCorrection(): Correction {
  const [revision, setRevision] = useState(0)
  const onCorrected = useRef<((row: Row) => void) | null>(null)
  const correct: Correction['correct'] = ({ id }, priority) => {
    if (!may('manager')) {
      notice('Setting a priority needs the role manager.')
      return
    }
    call<Detail>(`/api/logs/${id}/priority`, { method: 'PATCH', json: { priority } }).then(
      (event) => {
        notice(`${priority} now, for later events of the template too.`)
        onCorrected.current?.(event)
        setRevision((n) => n + 1)
      },
      (error: unknown) => notice(told(error)),
    )
  }
  return { revision, correct, onCorrected }
}
