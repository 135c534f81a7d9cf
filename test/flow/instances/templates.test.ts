import t from 'tap'
import { seeded } from '../../support/landing.js'
import { eventually } from '../../support/live-service.js'
import { startShared, type Instance } from '../../support/instances.js'
import { ingest, logIn, type Caller } from '../../support/service.js'

interface Explained {
  readonly template_priority: string | null
  readonly model: { readonly model_version: string }
}

interface Shown {
  readonly template_id: string
  readonly template_text: string
  readonly occurrence_count: number
  readonly priority: string
}

interface Event {
  readonly id: number
  readonly priority: string
  readonly template_id: string
  readonly message: string
}

interface Page {
  readonly items: readonly Event[]
  readonly next_cursor: string | null
}

const shared = await startShared(t)
if (shared === null) {
  t.plan(0, 'redis-server is not installed')
} else {
  const instances = [await shared.start(), await shared.start()]
  const [one, two] = instances
  if (one === undefined || two === undefined) throw new Error('bug: two were started')
  const callers = [await logIn(one), await logIn(two)]
  const templatesOf = async (caller: Caller, source: string): Promise<readonly Shown[]> => {
    const all = await caller.get<readonly Shown[]>('/api/logs/meta/templates?limit=200')
    const ids = new Set<string>()
    // All pages are read, because a repeated event has the time of its first message.
    for (let cursor: string | null = ''; cursor !== null;) {
      const page: Page = await caller.get<Page>(
        `/api/logs?source=${source}&limit=200${cursor === '' ? '' : `&cursor=${cursor}`}`,
      )
      for (const event of page.items) ids.add(event.template_id)
      cursor = page.next_cursor
    }
    return all.filter((each) => ids.has(each.template_id))
  }
  const send = async (at: Instance, source: string, messages: readonly string[]): Promise<void> => {
    const lines = messages.map((message) => JSON.stringify({ source, message, severity: 'ERROR' }))
    const reply = await ingest(at, lines.join('\n'))
    if (reply.status !== 202) throw new Error(await reply.text())
  }

  t.test(
    'two instances that see different halves of the same log end with the same templates',
    async (t) => {
      const seed = Number(process.env['SEED'] ?? Date.now() % 100_000)
      t.comment(`seed ${seed}`)
      const random = seeded(seed)
      const pick = (words: string): string => {
        const list = words.split(' ')
        return list[Math.floor(random() * list.length)] ?? ''
      }
      const names = 'anna ben cleo dora emil finn gero hans ida jule kurt lena mia nora otto paul'
      const hosts = 'alpha beta gamma delta epsilon zeta eta theta iota kappa'
      const message = (): string =>
        [
          () => `session of user ${pick(names)} was opened on host ${pick(hosts)} by the daemon`,
          () =>
            `transfer ${Math.floor(random() * 1e6)} from ${pick(hosts)} to ${pick(hosts)} is done`,
          () => `the volume of ${pick(names)} is almost full, please clean up now`,
          () =>
            `lease of ${pick(hosts)} renewed for the next ${Math.floor(random() * 100)} seconds`,
        ][Math.floor(random() * 4)]?.() ?? ''
      const sent = 800
      const some = (): string[] => Array.from({ length: 20 }, message)
      // Both instances mine at the same time, and neither waits for the templates of the other.
      for (let i = 0; i < sent / 40; i++)
        await Promise.all([send(one, 'halves', some()), send(two, 'halves', some())])
      const texts = await eventually(
        async () => await Promise.all(callers.map((caller) => templatesOf(caller, 'halves'))),
        ([a = [], b = []]) =>
          JSON.stringify(a) === JSON.stringify(b) &&
          a.reduce((sum, each) => sum + each.occurrence_count, 0) === sent &&
          new Set(a.map((each) => each.template_text)).size === a.length,
      )
      const [shown = []] = texts
      t.equal(shown.length, 4, shown.map((each) => each.template_text).join('\n'))
      const [stored] = await eventually(
        () =>
          shared.rows(`
          SELECT count() AS found, countIf(redirect_to = 0) AS living
          FROM templates FINAL WHERE source = 'halves'`),
        ([row]) => row?.['living'] === 4,
      )
      t.comment(`of ${String(stored?.['found'])} templates that either found`)

      const third = await shared.start()
      const fresh = await templatesOf(await logIn(third), 'halves')
      t.same(fresh, shown, 'one that starts later has them too')
      await third.stop()
    },
  )

  t.test('a correction at one instance holds at the other within a second', async (t) => {
    const text = (n: number): string => `pump ${n} of the cooling loop has stopped`
    await send(one, 'pumps', [text(1)])
    await send(two, 'pumps', [text(2)])
    const events = await eventually(
      async () =>
        (await callers[0]?.get<{ items: readonly Event[] }>('/api/logs?source=pumps'))?.items ?? [],
      (items) => items.length === 2,
    )
    const [first] = events
    const priority = first?.priority === 'P4' ? 'P1' : 'P4'
    const reply = await callers[0]?.call('PATCH', `/api/logs/${first?.id}/priority`, { priority })
    t.equal(reply?.status, 200)
    const sinceMs = Date.now()
    let at = 3
    await eventually(
      async () => {
        const n = at++
        await send(two, 'pumps', [text(n)])
        return await eventually(
          async () =>
            (
              await callers[1]?.get<{ items: readonly Event[] }>(
                `/api/logs?source=pumps&search=${n}`,
              )
            )?.items[0],
          (event) => event !== undefined,
        )
      },
      (event) => event?.priority === priority,
    )
    t.comment(`${Date.now() - sinceMs} ms until an event that came later was seen with it`)
    const explained = await callers[1]?.get<Explained>(`/api/logs/${first?.id}/explain`)
    t.equal(explained?.template_priority, priority)
    const here = await callers[0]?.get<Explained>(`/api/logs/${first?.id}/explain`)
    t.equal(explained?.model.model_version, here?.model.model_version, 'both have learned the same')
    t.match(here?.model.model_version, /\.1$/)
  })

  t.test('corrections at both at once are all learned from', async (t) => {
    const words = 'amber birch cedar dahlia elm fern ginkgo hazel iris juniper'.split(' ')
    await send(
      one,
      'plants',
      words.map((word) => `${word} gate reported a fault of the lock`),
    )
    const items = await eventually(
      async () =>
        (await callers[1]?.get<{ items: readonly Event[] }>('/api/logs?source=plants'))?.items ??
        [],
      (found) => found.length === words.length,
    )
    const correct = async (event: Event, i: number): Promise<number> => {
      const path = `/api/logs/${event.id}/priority`
      return (await callers[i % 2]?.call('PATCH', path, { priority: 'P1' }))?.status ?? 0
    }
    // One that waits too long for the lock is told to come again.
    await Promise.all(
      items.map((event, i) =>
        eventually(
          () => correct(event, i),
          (status) => status === 200,
        ),
      ),
    )
    const versions = await Promise.all(
      callers.map(async (caller) => {
        const path = `/api/logs/${items[0]?.id}/explain`
        return (await caller.get<Explained>(path)).model.model_version
      }),
    )
    t.equal(versions[0], versions[1])
    t.match(versions[0], new RegExp(`\\.${1 + words.length}$`), 'none was overwritten by another')
  })
}
