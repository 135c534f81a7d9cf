/** Hostile values in every query and path parameter of every route, for every role. */
import t from 'tap'
import { startInjection } from '../../support/injection.js'
import { walkQueries } from './injection/queries.js'

const injection = await startInjection()

walkQueries(t, injection)

t.test(
  'nothing of it was executed, and none of it was in the text of a statement',
  injection.verdict,
)
