import { test } from 'tap'

import { describeApi } from '../../../src/api/description.js'
import { createInProcessState } from '../../../src/coordination/memory-state.js'
import { INGEST_BYTES } from '../../../src/ingest/block.js'
import { createOnce } from '../../../src/ingest/once.js'
import { PROTOCOLS } from '../../../src/ingest/protocols/table.js'
import { AppError } from '../../../src/model/errors.js'

const state = createInProcessState({ onError: () => undefined })

/** Where a body of records may be sent, as `POST /path`. */
const taken = PROTOCOLS.flatMap(
  ({ routes }) =>
    routes?.({
      verifyKey: () => null,
      hasRoom: () => false,
      submit: () => Promise.reject(new AppError('overloaded', 'nothing is taken')),
      once: createOnce(state, state),
      onWrongKey: () => undefined,
      version: '0',
      isReady: () => true,
    }) ?? [],
)
  .filter(({ bodyBytes }) => bodyBytes === INGEST_BYTES)
  .map(({ method, path }) => `${method} ${path}`)

/** The same path is served under a prefix of any name, or of the protocol's. */
const withoutPrefix = (route: string): string =>
  route.replace(/ \/(?:\{prefix\}|elasticsearch|opensearch)(?=\/)/, ' ')

void test('OpenAPI has exactly the paths that the protocols take', async (t) => {
  const { paths } = JSON.parse(JSON.stringify(describeApi('0'))) as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly tags: string[] }>>>>
  }
  const described = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { tags }]) => tags.includes('collector') && path !== '/webhooks/scm')
      .map(([method]) => `${method.toUpperCase()} ${path}`),
  )
  t.ok(taken.length > 50, `${taken.length} routes`)
  t.same(described.toSorted(), [...new Set(taken.map(withoutPrefix))].toSorted())
})
