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
  return (
    <>
      {isAsking && (
        <button
          type="button"
          class="danger"
          onClick={() => {
            setAsking(false)
            onSure()
          }}
        >
          {sure}
        </button>
      )}{' '}
      {/* The same button before and after, so that it keeps the focus. */}
      <button type="button" class="quiet" onClick={() => setAsking(!isAsking)}>
        {isAsking ? 'Keep' : label}
      </button>
    </>
  )
}
