/** Hostile values in every query and path parameter of every route, for every role. */
import type { Test } from 'tap'
import { type TSchema } from '@sinclair/typebox'
import { HOSTILE, ODD, inTurn, placesOf, shareOf } from '../../../support/hostile.js'
import { shown, type Injection } from '../../../support/injection.js'

// oxlint-disable typescript/no-explicit-any -- bodies and replies of many shapes

/** The number of items in a reply, or of what it counts; null when it is no list. */
function sizeOf({ body, text }: { readonly body: any; readonly text: string }): number | null {
  const [, rows] = /\{"complete":true,"rows":(\d+)\}\s*$/.exec(text) ?? []
  if (rows !== undefined) return Number(rows)
  if (typeof body?.total === 'number') return body.total
  if (Array.isArray(body)) return body.length
  for (const name of ['items', 'buckets', 'groups', 'bars'])
    if (Array.isArray(body?.[name]))
      return body[name].reduce((sum: number, { count = 1 }: any) => sum + count, 0)
  return null
}

/** Those that would find more if they got out of the place where a value belongs. */
const BREAKING = HOSTILE.filter((value) => /OR 1=1|OR '1'|UNION|DROP|\\|[%*]/.test(value))

/** Parameters of free text that narrow a list. */
const filtersOf = (route: Injection['all']['routes'][number]): readonly string[] =>
  Object.entries<TSchema>(route.method === 'get' ? route.query.properties : {})
    .filter(([name, schema]) => name !== 'cursor' && placesOf(schema).some(([, free]) => free))
    .map(([name]) => name)

/** Walks through every parameter. */
export function walkQueries(t: Test, { service, all, fault }: Injection): void {
  const walked = all.routes.filter(({ id }) => id !== 'clearAll')

  t.test('every route has a request that succeeds, from which the walk departs', async (t) => {
    t.same(all.names.toSorted(), all.routes.map(({ id }) => id).toSorted())
    for (const route of walked) {
      const base = await all.base(route.id)
      const reply = await all.send(route, base)
      t.equal(reply.status, base.status ?? route.status, `${route.id}: ${reply.text.slice(0, 200)}`)
    }
  })

  t.test('a hostile value in a query finds nothing, and does nothing', async (t) => {
    let place = 0
    for (const route of walked) {
      const base = await all.base(route.id)
      const filters = filtersOf(route)
      await inTurn(filters.length > 0 ? [...HOSTILE.keys()] : [], 8, async (index) => {
        // Each filter has every value once.
        const query = Object.fromEntries(
          filters.map((name, i) => [name, HOSTILE[(index + i) % HOSTILE.length] ?? '']),
        )
        const reply = await all.send(route, { ...base, query })
        const wrong = fault(Object.values(query).join(' '), reply)
        if (wrong !== null) t.fail(wrong, { what: `${route.id} ${shown(JSON.stringify(query))}` })
      })
      for (const [name, schema] of Object.entries<TSchema>(route.query.properties)) {
        const isFree = placesOf(schema).some(([, free]) => free)
        const isFilter = filters.includes(name)
        const none = isFilter
          ? await all.send(route, { ...base, query: { [name]: 'no-such-thing' } })
          : null
        const values = isFilter ? BREAKING : isFree ? HOSTILE : ODD
        await inTurn(shareOf(values, place++), 8, async (value) => {
          const reply = await all.send(route, { ...base, query: { [name]: value } })
          const what = `${route.id} ?${name}=${shown(value)}`
          const wrong = fault(value, reply)
          if (wrong !== null) t.fail(wrong, { what })
          if (name === 'cursor' && reply.status !== 422)
            t.fail(`a cursor: ${reply.status}`, { what })
          if (none === null || reply.status !== 200) return
          const [found, least] = [sizeOf(reply), sizeOf(none)]
          if (found === null || found > (least ?? -1)) t.fail(`found ${found}`, { what })
        })
      }
      for (const value of HOSTILE.slice(0, 4)) {
        const reply = await all.send(route, {
          ...(await all.base(route.id)),
          query: { [value]: value },
        })
        const wrong = fault(value, reply)
        if (wrong !== null) t.fail(wrong, { what: `${route.id} ?${shown(value)}` })
      }
    }
    t.pass(`${walked.length} routes`)
  })

  t.test('a hostile value in a path names nothing', async (t) => {
    for (const route of walked.filter(({ params }) => params !== null)) {
      const base = await all.base(route.id)
      for (const name of Object.keys(route.params?.properties ?? {})) {
        await inTurn([...HOSTILE, ...ODD], 8, async (value) => {
          const reply = await all.send(route, {
            ...base,
            params: { ...base.params, [name]: value },
          })
          const what = `${route.id} {${name}}=${shown(value)}`
          const wrong = fault(value, reply)
          if (wrong !== null) t.fail(wrong, { what })
          if (![400, 404, 422, 431].includes(reply.status))
            t.fail(`answered ${reply.status}`, { what })
        })
      }
    }
  })

  t.test('lesser roles get no further with hostile values', async (t) => {
    for (const role of ['viewer', 'manager', 'admin'] as const) {
      const { access_token: token } = await service.newUser(role)
      for (const route of walked) {
        for (const value of HOSTILE.slice(0, 3)) {
          const places = Object.keys(route.query.properties)
          const query = Object.fromEntries(places.map((name) => [name, value]))
          const names = Object.keys(route.params?.properties ?? {})
          const params = Object.fromEntries(names.map((name) => [name, value]))
          const reply = await all.send(route, {
            params,
            query,
            token,
            ...(route.body === null ? {} : { body: {} }),
          })
          const wrong = fault(value, reply)
          if (wrong !== null) t.fail(wrong, { what: `${role} ${route.id} ${shown(value)}` })
          const order = ['public', 'viewer', 'manager', 'admin', 'superadmin']
          const mayNot = order.indexOf(route.role) > order.indexOf(role)
          if (mayNot && reply.status !== 403)
            t.fail(`${reply.status}`, { what: `${role} ${route.id}` })
        }
      }
    }
    t.pass('all routes')
  })
}
