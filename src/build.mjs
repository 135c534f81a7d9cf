/**
 * Builds the program, tests and benches. With `--if-changed` only when the program's sources, the compiler's settings
 * or the packages are not those of the last build, or files of it are missing.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { fileURLToPath } from 'node:url'

process.chdir(fileURLToPath(new URL('..', import.meta.url)))

/** Written when a build has succeeded. */
const STAMP = 'build/.sources'
/** The compiler's record of its last run. The compiler does not notice that outputs were deleted. */
const MEMORY = 'build/.tsbuildinfo'
const KERNEL = 'build/src/wasm/ingest.wasm'
const PAGE = 'build/ui/index.html'
const PROGRAM = 'build/program/main.js'

const sources = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .map((name) => `src/${name}`)
  .filter((name) => /\.(?:tsx?|mjs|json)$/.test(name) || name.startsWith('src/ui/'))
  .filter((name) => statSync(name).isFile())
  .toSorted()
const outputs = [
  KERNEL,
  PAGE,
  PROGRAM,
  ...sources
    .filter((name) => /(?<!\.d)\.ts$/.test(name) && !/^src\/(?:wasm\/assembly|ui)\//.test(name))
    .map((name) => `build/${name.replace(/\.ts$/, '.js')}`),
]
const stamp = {
  program: hashOf([...sources, 'package.json', 'package-lock.json', 'tsconfig.json']),
  kernel: hashOf([...sources.filter((name) => name.startsWith('src/wasm/')), 'package-lock.json']),
}
const [program, kernel] = existsSync(STAMP) ? readFileSync(STAMP, 'utf8').split('\n') : []
const isWhole = outputs.every((name) => existsSync(name))
const isCurrent = isWhole && program === stamp.program
if (!(process.argv.includes('--if-changed') && isCurrent)) build()

function hashOf(files) {
  const hash = createHash('sha256')
  for (const name of files) hash.update(`${name}\0`).update(readFileSync(name)).update('\0')
  return hash.digest('hex')
}

function build() {
  if (!existsSync('node_modules/typescript-native'))
    end(
      'the sources have changed since the build, and the compiler is not installed: run npm ci',
      1,
    )
  mkdirSync('build', { recursive: true })
  rmSync(STAMP, { force: true })
  if (!isWhole) rmSync(MEMORY, { force: true })
  if (kernel !== stamp.kernel) rmSync(KERNEL, { force: true })
  // The build prints nothing else for half a minute.
  if (process.argv.includes('--if-changed')) process.stderr.write('building the program …\n')
  const { status } = spawnSync('npm', ['run', '--silent', 'build:all'], { stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
  writeFileSync(STAMP, `${stamp.program}\n${stamp.kernel}\n`)
}

function end(text, code) {
  process.stderr.write(`${text}\n`)
  process.exit(code)
}
