import { useState } from 'preact/hooks'

interface SureProps {
  readonly label: string
  /** What the second press does, in words. */
  readonly sure: string
  readonly onSure: () => void
}

/** Asks once more before something that can't be taken back. */
export function Sure({ label, sure, onSure }: SureProps) {
  const [isAsking, setAsking] = useState(false)
  if (!isAsking)
    return (
      <button type="button" class="quiet" onClick={() => setAsking(true)}>
        {label}
      </button>
    )
  return (
    <>
      <button
        type="button"
        class="danger"
        onClick={() => {
          setAsking(false)
          onSure()
        }}
      >
        {sure}
      </button>{' '}
      <button type="button" class="quiet" onClick={() => setAsking(false)}>
        Keep
      </button>
    </>
  )
}
