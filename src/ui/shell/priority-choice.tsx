const PRIORITIES = ['P1', 'P2', 'P3', 'P4'] as const
type Priority = (typeof PRIORITIES)[number]

interface PriorityChoiceProps {
  readonly chosen: Priority
  readonly onChoose: (priority: Priority) => void
  /** What the priority is for, if that is not obvious. */
  readonly what?: string
  readonly isSmall?: boolean
  readonly isDisabled?: boolean
}

export const PriorityChoice = ({
  chosen,
  onChoose,
  what = '',
  isSmall = false,
  isDisabled = false,
}: PriorityChoiceProps) => (
  <span class={`segments ${isSmall ? 'small' : ''}`} role="group" aria-label="Priority">
    {PRIORITIES.map((priority) => (
      <button
        key={priority}
        type="button"
        class={priority.toLowerCase()}
        aria-pressed={chosen === priority}
        title={what === '' ? undefined : `${priority} ${what}`}
        disabled={isDisabled}
        onClick={() => onChoose(priority)}
      >
        {priority}
      </button>
    ))}
  </span>
)
