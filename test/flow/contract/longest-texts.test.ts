import t from 'tap'
import { startLiveService } from '../../support/live-service.js'

interface Schema {
  readonly type?: string
  readonly maxLength?: number
  readonly properties?: Readonly<Record<string, Schema>>
}

interface Operation {
  readonly 'x-role'?: string
  readonly requestBody?: {
    readonly content: Readonly<
      Record<string, { readonly schema: Schema; readonly example?: unknown }>
    >
  }
}

const { call } = await startLiveService(t)
const { paths } = (await call('GET /openapi.json')).body as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

/** Each text of a body that has a limit, with the way to it. */
function textsOf(schema: Schema, way: readonly string[] = []): [readonly string[], number][] {
  if (schema.type === 'string' && schema.maxLength !== undefined) return [[way, schema.maxLength]]
  return Object.entries(schema.properties ?? {}).flatMap(([name, each]) =>
    textsOf(each, [...way, name]),
  )
}

function withText(body: unknown, [name = '', ...way]: readonly string[], text: string): object {
  const value: unknown = Object(body)[name]
  return { ...Object(body), [name]: way.length === 0 ? text : withText(value, way, text) }
}

t.test('what the API takes is stored: a character of two units counts as one', async (t) => {
  let stored = 0
  for (const [path, { post }] of Object.entries(paths)) {
    const json = post?.['x-role'] === undefined ? undefined : post.requestBody?.content
    const body = json?.['application/json']
    if (body === undefined || path.startsWith('/api/auth/') || path.includes('{')) continue
    for (const [way, length] of textsOf(body.schema)) {
      const text = '\u{1F4A9}'.repeat(length)
      const answer = await call(`POST ${path}`, { json: withText(body.example, way, text) })
      if (answer.status === 201) stored++
      t.not(answer.status, 500, `${path} ${way.join('.')}`)
    }
  }
  t.ok(stored >= 5, `${stored} were stored`)
})
