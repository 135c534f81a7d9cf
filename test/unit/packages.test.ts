/** What an installation runs and takes: no code of a package before the program itself is started. */
import { spawnSync } from 'node:child_process'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const read = (name: string): string =>
  readFileSync(new URL(`../../../${name}`, import.meta.url), 'utf8')

interface Entry {
  readonly hasInstallScript?: boolean
  readonly version?: string
  readonly integrity?: string
  readonly dev?: boolean
}

const lock = JSON.parse(read('package-lock.json')) as {
  readonly packages: Readonly<Record<string, Entry>>
}
const entries = Object.entries(lock.packages).filter(([path]) => path !== '')
const isInstalled = (path: string): boolean =>
  existsSync(new URL(`../../../${path}`, import.meta.url))

/** They have a script and work without it: it was turned off for this very run. Scarf's counts installations. */
const WITH_SCRIPTS = [
  '@scarf/scarf',
  'chdb',
  'esbuild',
  'lmdb',
  'msgpackr-extract',
  'protobufjs',
  'unix-dgram',
]

t.test('install scripts are off, and none is needed', async (t) => {
  t.match(read('.npmrc'), /^ignore-scripts=true$/m)
  const found = entries.filter(([, entry]) => entry.hasInstallScript === true)
  t.same(
    found.map(([path]) => path.replace(/.*node_modules\//, '')),
    WITH_SCRIPTS,
  )
  const own = JSON.parse(read('package.json')) as { readonly scripts: Record<string, string> }
  const hooks = Object.keys(own.scripts).filter((name) =>
    /^(?:pre|post)?(?:install|prepare)/.test(name),
  )
  t.same(hooks, [], 'and this package has none of its own')
})

t.test(
  'a signal to npm reaches the program that it runs, which takes the place of the shell',
  async (t) => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
    const running = Object.values(scripts).filter((script) =>
      script.includes('build/program/main.js'),
    )
    t.ok(running.length >= 3)
    for (const script of running)
      t.match(
        script,
        /^node src\/build\.mjs --if-changed && exec node build\/program\/main\.js[ \w-]*$/,
      )
  },
)

/** ClickHouse for other platforms. The registry that the lock file was made with does not have it. */
const WITHOUT_CHECKSUM = ['darwin-arm64', 'darwin-x64', 'linux-arm64-gnu'].map(
  (platform) => `node_modules/@chdb/lib-${platform}`,
)

t.test('every package is pinned by its version and its checksum', async (t) => {
  t.ok(entries.length > 100, `${entries.length} packages`)
  for (const [path, entry] of entries) {
    const { integrity = '', version = '' } = entry
    t.match(version, /^\d+\.\d+\.\d+(?:-[\w.]+)?$/, path)
    if (!WITHOUT_CHECKSUM.includes(path)) t.match(integrity, /^sha512-[\w+/]{86}==$/, path)
  }
  t.notOk(WITHOUT_CHECKSUM.some(isInstalled), 'and of what is installed each')
})

/** Without the embedded ClickHouse, whose library alone takes 566 MB. */
const MOST_MB = 330

t.test('what an installation without the packages of development takes is bounded', async (t) => {
  const root = new URL('../../../', import.meta.url)
  const paths = entries
    .filter(([path, { dev }]) => dev !== true && !path.includes('@chdb/') && isInstalled(path))
    .map(([path]) => path)
  t.ok(paths.length > 30, `${paths.length} packages`)
  let bytes = 0
  for (const path of paths)
    for (const name of readdirSync(new URL(path, root), { recursive: true, encoding: 'utf8' })) {
      const found = lstatSync(new URL(`${path}/${encodeURI(name)}`, root))
      // A package within a package is counted for itself.
      if (found.isFile() && !/(?:^|\/)node_modules\//.test(name)) bytes += found.size
    }
  t.ok(bytes < MOST_MB * 1e6, `${Math.round(bytes / 1e6)} MB`)
})

t.test('what other platforms need is deleted, and nothing of this one', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'slim-test-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  const binary = (os: string, cpu: string, abi: string): string => `uws_${os}_${cpu}_${abi}.node`
  const { modules: abi } = process.versions
  const slim = (...args: readonly string[]) =>
    spawnSync(
      process.execPath,
      [fileURLToPath(new URL('../../../src/slim.mjs', import.meta.url)), `--dir=${dir}`, ...args],
      { encoding: 'utf8' },
    )
  const fill = (names: readonly string[]): void => {
    mkdirSync(join(dir, 'uws', 'bin'), { recursive: true })
    for (const name of names) writeFileSync(join(dir, 'uws', 'bin', name), 'x')
  }
  const left = (): readonly string[] => readdirSync(join(dir, 'uws', 'bin')).toSorted()
  const own = binary(process.platform, process.arch, abi)
  const others = [binary('plan9', 'x64', abi), binary(process.platform, process.arch, '1')]
  fill([...others, 'index.js.map', 'world.map'])
  t.equal(slim().status, 1, 'a platform without a binary keeps what there is')
  t.same(left(), [...others, 'index.js.map', 'world.map'].toSorted())
  fill([own, 'index.js'])
  t.equal(slim().status, 0)
  t.same(left(), [own, 'index.js', 'world.map'].toSorted())
  t.equal(slim('--os=plan9', '--cpu=mips').status, 1)
  t.same(left(), [own, 'index.js', 'world.map'].toSorted())
})
