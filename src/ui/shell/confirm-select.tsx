import { useRef, useState } from 'preact/hooks'

interface ConfirmSelectProps {
  readonly label: string
  readonly title?: string
  readonly value: string
  readonly options: readonly (readonly [value: string, text: string])[]
  readonly isDisabled?: boolean
  /** What choosing a value does, in words. */
  readonly sure: (chosen: string) => string
  readonly onSure: (chosen: string) => void
}

/** A list whose choice needs a confirmation, because an arrow key selects a value at once. */
export function ConfirmSelect({
  label,
  options,
  value,
  sure,
  onSure,
  ...rest
}: ConfirmSelectProps) {
  const [chosen, setChosen] = useState<string | null>(null)
  const select = useRef<HTMLSelectElement>(null)
  const decide = (): void => {
    setChosen(null)
    select.current?.focus()
  }
  return (
    <>
      <select
        ref={select}
        aria-label={label}
        title={rest.title}
        disabled={rest.isDisabled}
        value={chosen ?? value}
        onChange={({ currentTarget }) =>
          setChosen(currentTarget.value === value ? null : currentTarget.value)
        }
      >
        {options.map(([one, text]) => (
          <option key={one} value={one}>
            {text}
          </option>
        ))}
      </select>
      {chosen !== null && (
        <p class="line">
          <button
            class="danger"
            onClick={() => {
              decide()
              onSure(chosen)
            }}
          >
            {sure(chosen)}
          </button>
          <button class="quiet" onClick={decide}>
            Leave
          </button>
        </p>
      )}
    </>
  )
}
