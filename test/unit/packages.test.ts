/** What an installation runs and takes: no code of a package before the program itself is started. */
import { existsSync, readFileSync } from 'node:fs'
import t from 'tap'

const read = (name: string): string =>
  readFileSync(new URL(`../../../${name}`, import.meta.url), 'utf8')

interface Entry {
  readonly hasInstallScript?: boolean
  readonly version?: string
  readonly integrity?: string
  readonly link?: boolean
}

const lock = JSON.parse(read('package-lock.json')) as {
  readonly packages: Readonly<Record<string, Entry>>
}
const entries = Object.entries(lock.packages).filter(([path]) => path !== '')
const isInstalled = (path: string): boolean =>
  existsSync(new URL(`../../../${path}`, import.meta.url))

/** They have a script and work without it: it was turned off for this very run. Scarf's counts installations. */
const WITH_SCRIPTS = ['@scarf/scarf', 'chdb', 'lmdb', 'msgpackr-extract']

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
    const running = Object.values(scripts).filter((script) => script.includes('build/src/main.js'))
    t.ok(running.length >= 3)
    for (const script of running)
      t.match(
        script,
        /^node src\/build\.mjs --if-changed && exec node build\/src\/main\.js[ \w-]*$/,
      )
  },
)

t.test('every package that is installed is pinned by its version and its checksum', async (t) => {
  t.ok(entries.length > 100, `${entries.length} packages`)
  const loose = entries.filter(
    ([path, { integrity = '', version = '' }]) =>
      isInstalled(path) && (!integrity.startsWith('sha512-') || version === ''),
  )
  t.same(
    loose.map(([path]) => path),
    [],
  )
})
