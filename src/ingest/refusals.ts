import { AppError } from '../model/errors.js'

export const overloaded = (): AppError =>
  new AppError('overloaded', 'the service takes no more events right now', { retryAfterS: 1 })

/** The error of a dependency that does not work. */
export const unavailable = (dependency: string, cause: unknown): AppError =>
  cause instanceof AppError
    ? cause
    : new AppError('dependency_unavailable', `${dependency} can't take the events right now`, {
        details: { dependency },
        retryAfterS: 2,
        cause,
      })
