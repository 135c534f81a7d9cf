import { ApiError, told } from '../lib/api.js'

interface ProblemProps {
  /** What was asked. */
  readonly of: { readonly error: unknown; readonly reload: () => void }
  /** What one of is opened by its id, which nothing may have. */
  readonly what?: string
}

/** What went wrong with a question, with a button that asks it again; nothing when it went well. */
export function Problem({ of: { error, reload }, what }: ProblemProps) {
  if (error === null) return null
  const isMissing =
    what !== undefined &&
    error instanceof ApiError &&
    // An address that nothing can have names nothing, too.
    (error.status === 404 || error.status === 422)
  if (isMissing) return <p class="problem">There is no such {what}.</p>
  return (
    <p class="problem" role="alert">
      {told(error)}
      <button type="button" onClick={reload}>
        Try again
      </button>
    </p>
  )
}
