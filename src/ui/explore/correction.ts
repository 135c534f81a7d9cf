import { useRef, useState } from 'preact/hooks'

import type { Row } from './rows.js'

export interface Correction {
  /** The number of corrections so far, which makes views of events reload. */
  readonly revision: number
  readonly correct: (event: Pick<Row, 'id'>, priority: Row['priority']) => void
  /** Called with each event after its correction. */
  readonly onCorrected: { current: ((row: Row) => void) | null }
}

/** Sets priorities by hand. */
export function useCorrection(): Correction {
  const [revision, setRevision] = useState(0)
  const onCorrected = useRef<((row: Row) => void) | null>(null)
  const correct: Correction['correct'] = ({ id }, priority) => {
    void import('../later.js')
      .then(({ setPriority }) => setPriority(id, priority))
      .then((event) => {
        if (event === null) return
        onCorrected.current?.(event)
        setRevision((n) => n + 1)
      })
  }
  return { revision, correct, onCorrected }
}
