/** Hostile values in every field of every body, and in every header. */
import t from 'tap'
import { startInjection } from '../../support/injection.js'
import { walkBodies } from './injection/bodies.js'

const injection = await startInjection()

walkBodies(t, injection)

t.test(
  'nothing of it was executed, and none of it was in the text of a statement',
  injection.verdict,
)
