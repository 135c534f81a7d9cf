import type { RequestHead } from '../../edge/request.js'
import type { Caller } from '../route.js'
import { ACCESS_COOKIE, accessTokenOf } from './credentials.js'
import type { Sessions } from './sessions.js'

/**
 * Makes the function that tells who makes a request; it is synchronous.
 *
 * @throws AppError unauthorized or token_expired, when called, if there is no good access token
 */
export const createAuthenticate =
  ({ authenticate }: Pick<Sessions, 'authenticate'>) =>
  ({ headers, cookies }: Pick<RequestHead, 'headers' | 'cookies'>): Caller => {
    const { token, via } = accessTokenOf({
      authorization: headers.first('authorization') ?? '',
      cookie: cookies.get(ACCESS_COOKIE) ?? '',
    })
    return { ...authenticate(token), via }
  }
