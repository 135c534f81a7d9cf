import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const BUILD = fileURLToPath(new URL('../../../src/build.mjs', import.meta.url))

/** A small package with the build script, whose compiler copies and counts. */
const COMPILE = `
  const { appendFileSync, cpSync, existsSync, mkdirSync, writeFileSync } = require('node:fs')
  if (existsSync('broken')) process.exit(1)
  for (const folder of ['src/wasm', 'ui', 'program']) mkdirSync('build/' + folder, { recursive: true })
  for (const file of ['ui/index.html', 'program/main.js']) writeFileSync('build/' + file, '')
  appendFileSync('runs', 'program ')
  for (const name of ['a', 'b']) if (existsSync('src/' + name + '.ts')) cpSync('src/' + name + '.ts', 'build/src/' + name + '.js')
  if (!existsSync('build/src/wasm/ingest.wasm')) { appendFileSync('runs', 'kernel '); cpSync('src/wasm/assembly/k.ts', 'build/src/wasm/ingest.wasm') }`

t.test('a start builds when what it is built from has changed, and only then', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'build-test-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  const at = (name: string): string => join(dir, name)
  for (const folder of ['src/wasm/assembly', 'node_modules/typescript-native'])
    mkdirSync(at(folder), { recursive: true })
  cpSync(BUILD, at('src/build.mjs'))
  writeFileSync(at('compile.cjs'), COMPILE)
  writeFileSync(
    at('package.json'),
    JSON.stringify({ scripts: { 'build:all': 'node compile.cjs' } }),
  )
  for (const name of ['package-lock.json', 'tsconfig.json']) writeFileSync(at(name), '{}')
  for (const name of ['a', 'b', 'wasm/assembly/k']) writeFileSync(at(`src/${name}.ts`), '1')
  /** What was built. */
  const run = (...args: readonly string[]): string => {
    rmSync(at('runs'), { force: true })
    execFileSync(process.execPath, [at('src/build.mjs'), ...args], { stdio: 'pipe' })
    return existsSync(at('runs')) ? readFileSync(at('runs'), 'utf8').trim() : ''
  }
  const start = (): string => run('--if-changed')

  t.equal(start(), 'program kernel', 'the first start')
  t.equal(start(), '', 'the second')
  t.equal(run(), 'program', 'a build that is asked for')
  writeFileSync(at('src/a.ts'), '2')
  utimesSync(at('src/a.ts'), 0, 0)
  t.equal(start(), 'program', 'another text with an older time')
  utimesSync(at('src/a.ts'), 2_000_000_000, 2_000_000_000)
  t.equal(start(), '', 'the same text with a newer time')
  rmSync(at('src/b.ts'))
  t.equal(start(), 'program', 'a source less')
  writeFileSync(at('package-lock.json'), '{"a":1}')
  t.equal(start(), 'program kernel', 'other packages')
  rmSync(at('build/src/a.js'))
  writeFileSync(at('build/.tsbuildinfo'), '')
  t.equal(start(), 'program', 'an output less')
  t.notOk(existsSync(at('build/.tsbuildinfo')), 'the compiler does not rely on it')
  writeFileSync(at('src/wasm/assembly/k.ts'), '2')
  writeFileSync(at('broken'), '')
  t.throws(() => start(), 'a build that fails')
  t.throws(() => start(), 'is not taken for one')
  rmSync(at('broken'))
  t.equal(start(), 'program kernel')
  t.equal(start(), '')
  rmSync(at('node_modules'), { recursive: true })
  t.equal(start(), '', 'without a compiler it starts what is built')
  writeFileSync(at('src/a.ts'), '3')
  t.throws(() => start(), { message: /run npm ci/ }, 'and says so when it would need one')
})
