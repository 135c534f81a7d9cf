import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'tap'
import { stringify } from 'yaml'
import { bound } from '../support/bound.js'
import { DEPLOY, parseYaml, readDeploy } from '../support/deploy.js'
import { freePort } from '../support/ports.js'
import { ingest, KNOWN, logIn, startService, tempDataDir } from '../support/service.js'
import { runTool, toolPath, without } from '../support/tools.js'
import { MINUTE_MS } from '../../src/model/time.js'

const METRICS_TOKEN = 'metrics-token-of-the-test'
const skip = without('prometheus', 'promtool')

interface Panel {
  readonly title: string
  readonly type: string
  readonly targets?: readonly { readonly expr: string }[]
}
interface RuleFile {
  readonly groups: readonly {
    readonly rules: readonly { readonly alert: string; readonly expr: string }[]
  }[]
}
interface PrometheusFile {
  readonly scrape_configs: readonly Record<string, unknown>[]
}

const dashboard = JSON.parse(readDeploy('grafana/dashboard.json')) as {
  readonly uid: string
  readonly panels: readonly Panel[]
  readonly annotations: { readonly list: readonly { readonly expr: string }[] }
} // a file of ours
const alerts = (parseYaml('prometheus/alerts.yml')[0] as RuleFile).groups.flatMap(
  ({ rules }) => rules,
) // promtool checks its form

const expressions: readonly (readonly [string, string])[] = [
  ...dashboard.panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => [title, expr] as const),
  ),
  ...dashboard.annotations.list.map(({ expr }) => ['annotation', expr] as const),
]

/** As Grafana fills in its variables. */
const filled = (expr: string): string =>
  expr
    .replaceAll('$__rate_interval', '20s')
    .replaceAll('$__interval', '20s')
    .replaceAll('$instance', '.*')

test('rules and scrape configuration are right', { skip }, (t) => {
  const path = (name: string): string => join(DEPLOY, 'prometheus', name)
  const passes = (...args: readonly string[]): void => {
    const { code, text } = runTool('promtool', args)
    t.equal(code, 0, text)
  }
  passes('check', 'rules', path('alerts.yml'))
  passes('check', 'config', '--syntax-only', path('prometheus.yml'))
  passes('test', 'rules', path('alerts.test.yml'))
  const tested = readDeploy('prometheus/alerts.test.yml')
  for (const { alert } of alerts)
    t.match(tested, new RegExp(`alertname: ${alert}\\n +exp_alerts:\\n`), `${alert} has a test`)
  t.end()
})

test('Prometheus fills every panel and every rule from a running service', { skip }, async (t) => {
  const service = await startService(t, { DATA_DIR: tempDataDir(t), METRICS_TOKEN, ...KNOWN })
  const caller = await logIn(service)
  const metrics = async (headers: Record<string, string>): Promise<Response> =>
    await fetch(`${service.api}/metrics`, { headers })

  await t.test(
    'the token is asked for, and the one of the scrape configuration suffices',
    async (t) => {
      const remote = { 'x-forwarded-for': '192.0.2.1' }
      t.equal((await metrics(remote)).status, 401)
      const authorization = `Bearer ${METRICS_TOKEN}`
      t.equal((await metrics({ ...remote, authorization })).status, 200)
    },
  )

  const prometheus = await startPrometheus(t, new URL(service.api).host)
  const end = new AbortController()
  const traffic = (async (): Promise<void> => {
    while (!end.signal.aborted) {
      await ingest(service, '{"source":"a","message":"b"}\nnot json')
      await caller.get('/api/logs')
      await caller.call('GET', '/api/logs/999999')
      await sleep(200)
    }
  })()
  t.teardown(async () => {
    end.abort()
    await traffic
  })

  await t.test('every panel has values', async (t) => {
    t.ok(expressions.length > 35, `${expressions.length} expressions`)
    let empty = expressions
    for (const until = Date.now() + MINUTE_MS; empty.length > 0 && Date.now() < until;) {
      await sleep(500)
      const found = await Promise.all(empty.map(([, expr]) => prometheus.values(filled(expr))))
      empty = empty.filter((_, i) => found[i] !== true)
      // the last: the query that marks restarts has nothing to mark
      if (empty.every(([title]) => title === 'annotation')) break
    }
    t.same(
      empty.map(([title]) => title),
      ['annotation'],
    )
  })

  await t.test('the metrics that rules and panels name are exported', async (t) => {
    const exported = (await (await metrics({})).text())
      .split('\n')
      .map((line) => /^# TYPE (\S+)/.exec(line)?.[1] ?? '')
    t.ok(exported.length > 50)
    const named = [...alerts.map(({ expr }) => expr), ...expressions.map(([, expr]) => expr)]
      .flatMap((expr) => expr.match(/\b(?:log_engine|process|nodejs)_\w+/g) ?? [])
      .map((name) => name.replace(/_(?:bucket|count|sum)$/, ''))
    const unknown = new Set(named.filter((name) => !exported.includes(name)))
    t.same([...unknown], [])
  })

  await t.test('every rule is evaluated, and none fires', async (t) => {
    const rules = await prometheus.rules()
    t.equal(rules.length, alerts.length)
    for (const { name, health, state } of rules) {
      t.equal(health, 'ok', name)
      // what was refused on purpose here may make a rule wait for its 15 minutes
      t.not(state, 'firing', name)
    }
  })
})

interface Prometheus {
  /** whether an instant query has a result that is a number */
  values(expr: string): Promise<boolean>
  rules(): Promise<readonly { name: string; health: string; state: string }[]>
}

/** The shipped configuration with its intervals shortened and the target given by address. */
async function startPrometheus(
  t: { teardown(end: () => Promise<unknown>): void },
  target: string,
): Promise<Prometheus> {
  const dir = mkdtempSync(join(tmpdir(), 'prometheus-test-'))
  const [shipped] = parseYaml('prometheus/prometheus.yml') as readonly PrometheusFile[]
  const [{ dns_sd_configs: _, ...job } = {}] = shipped?.scrape_configs ?? []
  const token = join(dir, 'token')
  writeFileSync(token, METRICS_TOKEN)
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [join(DEPLOY, 'prometheus/alerts.yml')],
    scrape_configs: [
      {
        ...job,
        authorization: { credentials_file: token },
        static_configs: [{ targets: [target] }],
      },
    ],
  }
  writeFileSync(join(dir, 'prometheus.yml'), stringify(config))
  const port = await freePort()
  const child = spawn(
    ...bound(toolPath('prometheus'), [
      `--config.file=${join(dir, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(dir, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=error',
    ]),
    { stdio: ['ignore', 'ignore', 'inherit'] },
  )
  const ended = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
    rmSync(dir, { recursive: true, force: true })
  })
  const url = `http://127.0.0.1:${port}`
  for (const until = Date.now() + 30_000; ; await sleep(100)) {
    const reply = await fetch(`${url}/-/ready`).catch(() => null)
    if (reply?.status === 200) break
    if (child.exitCode !== null || Date.now() > until) throw new Error('prometheus did not start')
  }
  return {
    values: async (expr) => {
      const reply = await fetch(`${url}/api/v1/query?query=${encodeURIComponent(expr)}`)
      const { status, error, data } = (await reply.json()) as QueryReply // its contract
      if (status !== 'success') throw new Error(`${expr}: ${error}`)
      return data.result.some(({ value }) => !Number.isNaN(Number(value[1])))
    },
    rules: async () => {
      const reply = await fetch(`${url}/api/v1/rules`)
      const { data } = (await reply.json()) as RulesReply // its contract
      return data.groups.flatMap(({ rules }) => rules)
    },
  }
}

interface QueryReply {
  readonly status: string
  readonly error?: string
  readonly data: { readonly result: readonly { readonly value: readonly [number, string] }[] }
}
interface RulesReply {
  readonly data: {
    readonly groups: readonly {
      readonly rules: readonly { name: string; health: string; state: string }[]
    }[]
  }
}
