import { ApiError, told } from '../lib/api.js'

interface ProblemProps {
  /** What was asked. */
  readonly of: { readonly error: unknown; readonly reload: () => void }
  /** The noun of something that is opened by its id, for the message that there is none with this id. */
  readonly what?: string
}

/** What went wrong with a question, with a button that asks it again; nothing when it went well. */
export function Problem({ of: { error, reload }, what }: ProblemProps) {
  if (error === null) return null
  const isMissing =
    what !== undefined &&
    error instanceof ApiError &&
    // An id of the wrong form (422) names nothing either.
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
