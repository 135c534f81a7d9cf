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
  /** Nothing of it is there when the program runs. */
  readonly isTypeOnly: boolean
}

/**
 * The order of the folders and files of `src`: each imports only itself and what stands after it. What stands
 * on one line is of one height and does not import its neighbours.
 */
const ORDER: readonly (readonly string[])[] = [
  ['main'],
  ['commands'],
  ['app', 'demo'],
  ['api'],
  ['ui'],
  ['backup', 'ingest', 'alerting'],
  ['insights'],
  ['priority'],
  ['events'],
  ['retention'],
  ['templates', 'records'],
  ['coordination'],
  ['writer'],
  ['wal', 'clickhouse', 'http'],
  ['telemetry', 'wasm', 'config', 'query'],
  ['settings'],
  ['model', 'lib'],
]

/** The one user of each outside package; a package that is not listed may not be imported. */
const USERS: Readonly<Record<string, RegExp>> = {
  '@clickhouse/client': /^src\/clickhouse\//,
  aws4fetch: /^src\/clickhouse\/bucket\.ts$/,
  chdb: /^src\/clickhouse\//,
  'ffi-rs': /^src\/clickhouse\//,
  ioredis: /^src\/coordination\//,
  leven: /^src\/(lib\/misspelled|query\/fault)\.ts$/,
  'lru-cache': /^src\/(alerting|coordination|events|api|templates)\//,
  handlebars: /^src\/alerting\/template\.ts$/,
  piscina: /^src\/ingest\/(pool|worker)\.ts$/,
  'uWebSockets.js': /^src\/http\//,
  'uws-next': /^src\/http\//,
  'swagger-ui-dist': /^src\/api\/docs\.ts$/,
  zstddec: /^src\/http\//,
  'snappy-wasm': /^src\/http\//,
  pbf: /^src\/ingest\/protocols\//,
  '@msgpack/msgpack': /^src\/ingest\/(protocols|listeners)\//,
  pino: /^src\/telemetry\//,
  'prom-client': /^src\/telemetry\//,
  'fast-csv': /^src\/ingest\/formats\//,
  '@fast-csv/parse': /^src\/ingest\/formats\//,
  marked: /^src\/api\/guides\.ts$/,
  'fast-jwt': /^src\/api\/auth\//,
  '@node-rs/argon2': /^src\/api\/auth\//,
  otpauth: /^src\/api\/auth\/second-factor\.ts$/,
  'openid-client': /^src\/api\/auth\/oidc\.ts$/,
  nodemailer: /^src\/lib\/smtp\.ts$/,
  '@zxcvbn-ts/core': /^src\/api\/auth\/guessable\.ts$/,
  '@zxcvbn-ts/language-common': /^src\/api\/auth\/guessable\.ts$/,
  ajv: /^src\/(api\/validation|coordination\/schema-check)\.ts$/,
  'ajv-formats': /^src\/api\/validation\.ts$/,
  preact: /^src\/ui\//,
  '@preact/signals': /^src\/ui\//,
  uplot: /^src\/ui\//,
  uqr: /^src\/ui\/shell\/qr-code\.tsx$/,
  '@sinclair/typebox':
    /^src\/(api|ui|records|coordination|events|insights|backup|priority|retention|model|alerting)\//,
}

/** What decodes, mines and computes does no input and output, so it imports none of these. */
const IO = /^(node:)?(fs|net|http|https|http2|dgram|tls|child_process|worker_threads|cluster)(\/|$)/

async function readImports(): Promise<{ files: readonly string[]; imports: readonly Import[] }> {
  const { output } = await cruise(
    ['src'],
    { baseDir: root, tsPreCompilationDeps: true, doNotFollow: { path: 'node_modules' } },
    { extensions: ['.ts', '.tsx', '.js', '.json'] },
  )
  const { modules } = output as ICruiseResult // no reporter was asked for
  const own = modules.filter(({ source }) => /^src\/.*\.tsx?$/.test(source))
  return {
    files: own.map(({ source }) => source),
    imports: own.flatMap(({ source, dependencies }) =>
      dependencies.map((dependency) => ({
        from: source,
        isTypeOnly: dependency.dependencyTypes.includes('type-only'),
        to: dependency.resolved.startsWith('src/')
          ? dependency.resolved
          : dependency.module.startsWith('.')
            ? relative(root, dependency.resolved)
            : dependency.module,
      })),
    ),
  }
}

/** A folder of `src`, or a file beside the folders without its ending. */
const placeOf = (file: string): string => /^src\/([^/.]+)/.exec(file)?.[1] ?? ''
const packageOf = (name: string): string => /^(@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name
const told = ({ from, to }: Import): string => `${from} imports ${to}`

/** Files that import themselves by way of others. */
function circlesIn(imports: readonly Import[]): readonly string[] {
  const targets = new Map<string, string[]>()
  for (const { from, to } of imports) targets.set(from, [...(targets.get(from) ?? []), to])
  const reaches = (start: string): boolean => {
    const seen = new Set<string>()
    const waiting = [...(targets.get(start) ?? [])]
    for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
      if (file === start) return true
      if (seen.has(file)) continue
      seen.add(file)
      waiting.push(...(targets.get(file) ?? []))
    }
    return false
  }
  return [...targets.keys()].filter(reaches)
}

/** The page is below the API, which serves it, and knows the shapes of its replies. */
const isShapeOfReply = ({ from, to, isTypeOnly }: Import): boolean =>
  isTypeOnly && placeOf(from) === 'ui' && to.startsWith('src/api/schemas/')

const heightOf = (file: string): number => ORDER.findIndex((row) => row.includes(placeOf(file)))

void test('imports keep to the order of the folders', async (t) => {
  const { files, imports } = await readImports()
  const between = imports.filter(({ to }) => to.startsWith('src/'))
  const outside = imports.filter(({ to }) => !to.startsWith('src/') && !isBuiltin(to))

  void t.test('the files were read', async (t) => {
    t.ok(files.length > 100, `${files.length} files`)
    t.ok(between.length > 300, `${between.length} imports`)
    const places = new Set(files.map(placeOf))
    t.same(new Set(ORDER.flat()), places, 'the order names every place, and no other')
    t.ok(between.some(({ from, to }) => from === 'src/main.ts' && to === 'src/config.ts'))
    t.ok(between.some(({ from, to }) => /worker/.test(from) && placeOf(to) === 'templates'))
    t.ok(outside.some(({ to }) => to === 'piscina'))
  })

  void t.test('imports run one way', async (t) => {
    const wrong = between.filter(
      (one) =>
        placeOf(one.from) !== placeOf(one.to) &&
        heightOf(one.from) >= heightOf(one.to) &&
        !isShapeOfReply(one),
    )
    t.same(wrong.map(told), [])
  })

  void t.test('the page runs the query language, and nothing else of the service', async (t) => {
    const run = between.filter(({ from, isTypeOnly }) => placeOf(from) === 'ui' && !isTypeOnly)
    t.ok(run.length > 100, `${run.length} imports`)
    t.same([...new Set(run.map(({ to }) => placeOf(to)))].toSorted(), ['query', 'ui'])
  })

  void t.test('no import circle, of types neither', async (t) => {
    t.same(circlesIn(between), [])
  })

  void t.test('each outside package has one user', async (t) => {
    const wrong = outside.filter(({ from, to }) => !USERS[packageOf(to)]?.test(from))
    t.same(wrong.map(told), [])
  })

  void t.test('what decodes, mines and computes does no input and output', async (t) => {
    const folders = [
      'ingest/formats',
      'templates',
      'priority',
      'insights',
      'events',
      'query',
      'model',
    ].map((folder) => `src/${folder}/`)
    for (const folder of folders)
      t.ok(
        files.some((file) => file.startsWith(folder)),
        folder,
      )
    const wrong = imports.filter(
      ({ from, to }) => folders.some((folder) => from.startsWith(folder)) && IO.test(to),
    )
    t.same(wrong.map(told), [])
  })

  void t.test('the query language runs in a browser too', async (t) => {
    const own = imports.filter(({ from }) => from.startsWith('src/query/'))
    t.ok(own.length > 10, `${own.length} imports`)
    const reached = new Set(own.map(({ to }) => to))
    for (const file of reached)
      for (const { from, to } of imports) if (from === file) reached.add(to)
    t.same(
      [...reached].filter((to) => !/^src\/(query|model)\//.test(to)),
      ['leven'],
      'and this package, which is plain JavaScript',
    )
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

void test('no table is asked with `in`, which knows the names that every object has', async (t) => {
  const files = ['src', 'test', 'bench'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.tsx?$/.test(file))
      .map((file) => join(folder, file)),
  )
  t.ok(files.length > 500, `${files.length} files`)
  const texts = /\/\/.*|\/\*[^]*?\*\/|'[^'\n]*'|`[^`]*`/g
  const asking = files.filter((file) =>
    /[\w)\]] in [A-Z][A-Z_]+\b/.test(readFileSync(join(root, file), 'utf8').replaceAll(texts, '')),
  )
  t.same(asking, [], 'Object.hasOwn does not know `constructor`')
})

void test('no line of the log has a field twice', async (t) => {
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  const calls = files
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => [
      ...readFileSync(join(root, 'src', file), 'utf8').matchAll(
        /\blog\.(?:debug|info|warn|error|fatal)\(\s*(\{[^{}]*\})/g,
      ),
    ])
  const all = calls.map(([, fields = '']) => fields)
  t.ok(all.length > 50, `${all.length} calls`)
  t.same(
    all.filter((fields) => /[{,]\s*(?:pid|level|time|msg)\b/.test(fields)),
    [],
    'the log itself adds these',
  )
})
