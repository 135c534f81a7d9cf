/** Hostile values in every field of every body, and in every header. */
import type { Test } from 'tap'
import { type TSchema } from '@sinclair/typebox'
import { isForm, type EveryRoute } from '../../../support/every-route.js'
import { HOSTILE, ODD, inTurn, placesOf, shareOf } from '../../../support/hostile.js'
import { shown, type Injection } from '../../../support/injection.js'

// oxlint-disable typescript/no-explicit-any -- bodies and replies of many shapes

const uniquePlaces = (schema: TSchema): [string[], boolean][] => {
  const all = new Map<string, [string[], boolean]>()
  for (const [path, isFree] of placesOf(schema)) {
    const before = all.get(path.join())
    all.set(path.join(), [path, isFree || before?.[1] === true])
  }
  return [...all.values()]
}

function withValue(body: unknown, [head, ...rest]: readonly string[], value: unknown): any {
  if (head === undefined) return value
  if (/^\d+$/.test(head)) return [withValue(undefined, rest, value)]
  const given: Record<string, unknown> = { ...(body as object | undefined) }
  return { ...given, [head]: withValue(given[head], rest, value) }
}

const valuesFor = (isFree: boolean): readonly string[] => (isFree ? HOSTILE : ODD)

const bodySchema = (route: EveryRoute['routes'][number]): TSchema | null => {
  const body: any = route.body
  if (body === null) return null
  return isForm(route) ? body.fields : body
}

/** Operations that hash or require a password. */
const SLOW = ['login', 'refresh', 'createUser', 'setUserPassword']
/** Corrections take turns, and one that waits for ten seconds is refused. */
const widthOf = ({ id }: { readonly id: string }): number => (id === 'correctPriority' ? 2 : 8)

const HEADERS = (
  'x-request-id origin referer user-agent accept accept-language if-none-match if-modified-since range ' +
  'x-forwarded-for x-forwarded-host x-forwarded-proto x-real-ip forwarded x-http-method-override ' +
  'x-original-url sec-fetch-site sec-websocket-protocol x-api-key x-scm-token traceparent'
).split(' ')

/** Walks through every body and every header. */
export function walkBodies(t: Test, { service, all, fault }: Injection): void {
  const walked = all.routes.filter(({ id }) => id !== 'clearAll')
  let count = 0
  const superadmins = async (): Promise<number> =>
    (await service.call('GET /api/users?limit=200')).body.items.filter(
      ({ role }: any) => role === 'superadmin',
    ).length

  t.test('a hostile value in a body is refused or kept as it is', async (t) => {
    const admins = await superadmins()
    let place = 0
    for (const route of walked) {
      const schema = bodySchema(route)
      if (schema === null) continue
      const places = uniquePlaces(schema)
      t.ok(places.length > 0, route.id)
      const more: [string[], boolean][] = isForm(route) ? [[['file_name'], true]] : []
      for (const [path, isFree] of [...places, ...more]) {
        const field = path.at(-1) ?? ''
        const values = shareOf(valuesFor(isFree), place++).filter(
          (_, i) => !SLOW.includes(route.id) || i % 2 === 0,
        )
        await inTurn(values, widthOf(route), async (value) => {
          const base = await all.base(route.id)
          const reply = await all.send(route, { ...base, body: withValue(base.body, path, value) })
          const what = `${route.id} ${path.join('.')}=${shown(value)}`
          const wrong = fault(value, reply)
          if (wrong !== null) t.fail(wrong, { what })
          const kept: unknown = reply.status < 300 ? reply.body?.[field] : undefined
          const isKept =
            typeof kept !== 'string' || !isFree || kept === value || kept === value.trim()
          if (!isKept) t.fail(`kept as ${kept}`, { what })
        })
      }
      if (isForm(route)) continue
      const { body = {}, ...base } = await all.base(route.id)
      const others = [
        `{"__proto__":{"role":"superadmin","is_active":true},${JSON.stringify(body).slice(1)}`.replace(
          ',}',
          '}',
        ),
        JSON.stringify({ ...body, constructor: { prototype: { role: 'superadmin' } } }),
        JSON.stringify({ ...body, [HOSTILE[0] ?? '']: 1 }),
        JSON.stringify([body]),
        JSON.stringify(HOSTILE[0]),
        `${'{"a":'.repeat(3_000)}1${'}'.repeat(3_000)}`,
      ]
      for (const text of others) {
        const reply = await all.send(route, { ...base, text })
        const what = `${route.id} ${text.slice(0, 100)}`
        const wrong = fault(text, reply)
        if (wrong !== null) t.fail(wrong, { what })
        if (![413, 422].includes(reply.status)) t.fail(`answered ${reply.status}`, { what })
      }
    }
    t.equal(await superadmins(), admins, 'nobody was made superadmin')
    t.equal((await service.call(`GET /api/users/${all.user.id}`)).body.role, 'viewer')
  })

  t.test('a hostile header changes nothing', async (t) => {
    // HTTP clients can send only one line of text as a header value.
    const values = HOSTILE.map((value) =>
      Buffer.from(value.replaceAll(/[\r\n\0]/g, ' ').slice(0, 150)).toString('latin1'),
    ).filter((value, i, all) => all.indexOf(value) === i)
    const nextValue = (): string => values[count++ % values.length] ?? ''
    await inTurn(walked, 4, async (route) => {
      for (let i = 0; i < 2; i++) {
        const value = nextValue()
        const base = await all.base(route.id)
        const headers = Object.fromEntries(HEADERS.map((name) => [name, value]))
        const reply = await all.send(route, { ...base, headers })
        const what = `${route.id} headers ${shown(value)}`
        const wrong = fault(value, reply)
        if (wrong !== null) t.fail(wrong, { what })
        // A bearer token is valid from any origin; the metrics are refused to the client of a proxy.
        const wanted = route.id === 'metrics' ? 401 : (base.status ?? route.status)
        if (reply.status !== wanted) t.fail(`${reply.status}`, { what })
      }
      for (const name of ['authorization', 'cookie', 'content-type', 'content-encoding']) {
        const value = nextValue()
        const what = `${route.id} ${name}: ${shown(value)}`
        const text = { authorization: `Bearer ${value}`, cookie: `ACCESS_TOKEN=${value}` }[name]
        const headers = { [name]: text ?? value }
        const request = { ...(await all.base(route.id)), headers }
        const reply = await all.send(
          route,
          text === undefined ? request : { ...request, token: null },
        )
        const wrong = fault(value, reply)
        if (wrong !== null) t.fail(wrong, { what })
        const isLetIn = text !== undefined && reply.status < 400 && route.role !== 'public'
        if (isLetIn) t.fail('was let in', { what })
      }
    })
    t.pass(`${values.length} values`)
  })
}
