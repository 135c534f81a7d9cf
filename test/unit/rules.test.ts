import { readdirSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cruise, type ICruiseResult } from 'dependency-cruiser'
import { test } from 'tap'

const root = fileURLToPath(new URL('../../../', import.meta.url))

interface Import {
  readonly from: string
  readonly to: string
}

/** Folders a folder of `src` may import besides itself, `model/` and `lib/`. */
const FOLDERS: Readonly<Record<string, readonly string[]>> = {
  model: [],
  lib: [],
  collector: [],
  mining: ['hot'],
  insights: [],
  telemetry: [],
  live: [],
  hot: [],
  pipeline: ['telemetry', 'hot'],
  store: ['telemetry'],
  state: ['telemetry'],
  edge: ['telemetry'],
  api: ['telemetry', 'edge'],
}

/** Where the parts are joined; threads are among them because they can't be passed functions. */
const JOINERS = [
  /^src\/main\.ts$/,
  /^src\/assembly\//,
  /^src\/pipeline\/(pipeline|worker|body-encoder|miner-thread)\.ts$/,
]

/** The one user of each outside package; a package that is not listed may not be imported. */
const USERS: Readonly<Record<string, RegExp>> = {
  '@clickhouse/client': /^src\/store\//,
  chdb: /^src\/store\//,
  'ffi-rs': /^src\/store\//,
  ioredis: /^src\/state\//,
  'lru-cache': /^src\/(state|live|api|store)\//,
  piscina: /^src\/pipeline\/(pool|worker)\.ts$/,
  'uWebSockets.js': /^src\/edge\//,
  'uws-next': /^src\/edge\//,
  fzstd: /^src\/edge\//,
  pino: /^src\/telemetry\//,
  'prom-client': /^src\/telemetry\//,
  'fast-csv': /^src\/collector\//,
  '@fast-csv/parse': /^src\/collector\//,
  'fast-jwt': /^src\/api\/auth\//,
  '@node-rs/argon2': /^src\/api\/auth\//,
  ajv: /^src\/api\/validation\.ts$/,
  'ajv-formats': /^src\/api\/validation\.ts$/,
  '@sinclair/typebox': /^src\/(api|assembly|live)\//,
}

/** `collector` and `mining` do no I/O: none of these. */
const IO = /^(node:)?(fs|net|http|https|http2|dgram|tls|child_process|worker_threads|cluster)(\/|$)/

async function readImports(): Promise<{ files: readonly string[]; imports: readonly Import[] }> {
  const { output } = await cruise(
    ['src'],
    { baseDir: root, tsPreCompilationDeps: true, doNotFollow: { path: 'node_modules' } },
    { extensions: ['.ts', '.js', '.json'] },
  )
  const { modules } = output as ICruiseResult // no reporter was asked for
  const own = modules.filter(({ source }) => /^src\/.*\.ts$/.test(source))
  return {
    files: own.map(({ source }) => source),
    imports: own.flatMap(({ source, dependencies }) =>
      dependencies.map((dependency) => ({
        from: source,
        to: dependency.resolved.startsWith('src/')
          ? dependency.resolved
          : dependency.module.startsWith('.')
            ? relative(root, dependency.resolved)
            : dependency.module,
      })),
    ),
  }
}

const folderOf = (file: string): string => /^src\/([^/]+)\//.exec(file)?.[1] ?? ''
const packageOf = (name: string): string => /^(@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name
const told = ({ from, to }: Import): string => `${from} imports ${to}`

void test('imports keep to the map', async (t) => {
  const { files, imports } = await readImports()
  const between = imports.filter(({ to }) => to.startsWith('src/'))
  const outside = imports.filter(({ to }) => !to.startsWith('src/') && !isBuiltin(to))

  void t.test('the files were read', async (t) => {
    t.ok(files.length > 100, `${files.length} files`)
    t.ok(between.length > 300, `${between.length} imports`)
    for (const folder of [
      'collector',
      'mining',
      'pipeline',
      'store',
      'state',
      'api',
      'edge',
      'live',
    ])
      t.ok(
        files.some((file) => folderOf(file) === folder),
        folder,
      )
    t.ok(between.some(({ from, to }) => from === 'src/main.ts' && to === 'src/config.ts'))
    t.ok(between.some(({ from, to }) => /worker/.test(from) && folderOf(to) === 'mining'))
    t.ok(outside.some(({ to }) => to === 'piscina'))
  })

  void t.test('every folder has its row in the table', async (t) => {
    const folders = new Set(
      files.map(folderOf).filter((name) => name !== '' && name !== 'assembly'),
    )
    t.same(
      [...folders].filter((name) => FOLDERS[name] === undefined),
      [],
    )
  })

  void t.test('no stage imports another stage', async (t) => {
    const wrong = between.filter(({ from, to }) => {
      if (JOINERS.some((joiner) => joiner.test(from))) return false
      const [own, other] = [folderOf(from), folderOf(to)]
      if (own === '' || own === other) return false
      const allowed = FOLDERS[own] ?? []
      const isFoundation = own === 'model' || own === 'lib'
      return !(allowed.includes(other) || (!isFoundation && ['model', 'lib'].includes(other)))
    })
    t.same(wrong.map(told), [])
  })

  void t.test('nothing imports the joiners but the start and other joiners', async (t) => {
    const wrong = between.filter(({ from, to }) => {
      const isTop = to === 'src/main.ts' || folderOf(to) === 'assembly'
      return isTop && from !== 'src/main.ts' && folderOf(from) !== 'assembly'
    })
    t.same(wrong.map(told), [])
  })

  void t.test('each outside package has one user', async (t) => {
    const wrong = outside.filter(({ from, to }) => !USERS[packageOf(to)]?.test(from))
    t.same(wrong.map(told), [])
  })

  void t.test('decoding and mining do no input and output', async (t) => {
    const wrong = imports.filter(
      ({ from, to }) => /^src\/(collector|mining|model)\//.test(from) && IO.test(to),
    )
    t.same(wrong.map(told), [])
  })
})

void test('signals of tests name a process', async (t) => {
  const files = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
  const senders = files.filter(
    (file) =>
      file.endsWith('.ts') &&
      /process\.kill\(/.test(readFileSync(join(root, 'test', file), 'utf8')),
  )
  t.same(senders, ['support/signals.ts'], '0 would be whoever runs the tests')
})
