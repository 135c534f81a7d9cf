import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { startThreads } from '../../src/ingest/pool.js'

// A program that ends threads while they load a module, and then says so. V8 takes most of the time to link this one: it looks for
// each of the names in a chain of files.
const NAMES = 4000
const FILES = 60
const TIMES = 6

const dir = mkdtempSync(join(tmpdir(), 'threads-test-'))
process.once('exit', () => rmSync(dir, { recursive: true, force: true }))
const names = Array.from({ length: NAMES }, (_, i) => `name${i}`)
const write = (file: number, text: string): void =>
  writeFileSync(join(dir, `${file}.mjs`), `${text}\n`)
write(0, `import { ${names.join(', ')} } from './1.mjs'\nexport const ping = () => name0`)
for (let file = 1; file < FILES; file++) write(file, `export * from './${file + 1}.mjs'`)
write(FILES, names.map((name) => `export const ${name} = true`).join('\n'))

const start = () => startThreads(pathToFileURL(join(dir, '0.mjs')).href, 1)
const startedMs = performance.now()
const whole = start()
await whole.run(null, { name: 'ping' })
const loadingMs = performance.now() - startedMs
await whole.close({ force: true })
for (let time = 1; time < TIMES; time++) {
  const threads = start()
  await sleep((loadingMs * time) / TIMES)
  await threads.close({ force: true })
}
process.stdout.write('all ended\n')
