import { ApiError, told } from './api.js'

/** What a person reads about a failure to open something; an address that nothing can have names nothing, too. */
export const toldOf = (what: string, error: unknown): string =>
  error instanceof ApiError && (error.status === 404 || error.status === 422)
    ? `There is no such ${what}.`
    : told(error)
