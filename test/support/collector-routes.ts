import { createInProcessState } from '../../src/coordination/memory-state.js'
import type { HttpRoute } from '../../src/http/routes.js'
import { createOnce } from '../../src/ingest/once.js'
import { PROTOCOLS } from '../../src/ingest/protocols/table.js'
import { AppError } from '../../src/model/errors.js'

const state = createInProcessState({ onError: () => undefined })

/** The routes of all protocols on the collector's port, which take nothing. */
export const COLLECTOR_ROUTES: readonly HttpRoute[] = PROTOCOLS.flatMap(
  (protocol) =>
    protocol.routes?.({
      verifyKey: () => null,
      hasKey: () => false,
      hasRoom: () => false,
      submit: () => Promise.reject(new AppError('overloaded', 'nothing is taken')),
      once: createOnce(state, state),
      onWrongKey: () => undefined,
      version: '0',
      isReady: () => true,
    }) ?? [],
)

/** A path of a route, with a value for each parameter. */
export const pathOf = ({ path }: HttpRoute): string => path.replaceAll(/\{\w+\}/g, 'shop')
