import { useState } from 'preact/hooks'

interface ConfirmButtonProps {
  readonly label: string
  /** What the confirmation does, in words. */
  readonly sure: string
  readonly onSure: () => void
}

/** A button that asks for confirmation before something that cannot be undone. */
export function ConfirmButton({ label, sure, onSure }: ConfirmButtonProps) {
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
      {/* The same button element before and after, so that it keeps the focus. */}
      <button type="button" class="quiet" onClick={() => setAsking(!isAsking)}>
        {isAsking ? 'Keep' : label}
      </button>
    </>
  )
}
