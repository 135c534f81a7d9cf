import { ApiError, messageOf } from '../lib/api.js'

interface ProblemProps {
  /** The request that failed. */
  readonly of: { readonly error: unknown; readonly reload: () => void }
  /** The noun of a record that is opened by its id, for the message that it does not exist. */
  readonly what?: string
}

/** The error of a request with a button to retry; nothing after a success. */
export function Problem({ of: { error, reload }, what }: ProblemProps) {
  if (error === null) return null
  const isMissing =
    what !== undefined &&
    error instanceof ApiError &&
    // An invalid id (422) does not name a record either.
    (error.status === 404 || error.status === 422)
  if (isMissing) return <p class="problem">There is no such {what}.</p>
  return (
    <p class="problem" role="alert">
      {messageOf(error)}
      <button type="button" onClick={reload}>
        Try again
      </button>
    </p>
  )
}
