import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startVictoriaLogs } from '../../../bench/lib/victorialogs.js'

/** Takes the arguments and the signal of VictoriaLogs, keeps nine bytes, and tells where. */
const PROGRAM = `#!${process.execPath}
const { createServer } = require('node:http')
const { writeFileSync, mkdirSync } = require('node:fs')
const argument = (name) => process.argv.find((one) => one.startsWith('-' + name + '=')).slice(name.length + 2)
const folder = argument('storageDataPath')
mkdirSync(folder + '/partitions/20261122', { recursive: true })
process.on('SIGINT', () => {
  writeFileSync(folder + '/partitions/20261122/values.bin', '123456789')
  process.exit(0)
})
const [host, port] = argument('httpListenAddr').split(':')
setTimeout(() => createServer((_, reply) => reply.end(folder)).listen(Number(port), host), 100)
`

const programIn = (folder: string, name: string, text: string): string => {
  const path = join(folder, name)
  writeFileSync(path, text)
  chmodSync(path, 0o755)
  return path
}

void t.test('a neighbour is started, measured and ended with its folder', async (t) => {
  const program = programIn(t.testdir({}), 'neighbour.cjs', PROGRAM)
  const neighbour = await startVictoriaLogs(program)
  const folder = await (await fetch(neighbour.url)).text()
  t.match(new URL(neighbour.url).hostname, '127.0.0.1')
  t.ok(neighbour.usage().peakRssBytes > 1_000_000)
  t.ok(existsSync(folder))
  t.equal(await neighbour.stop(), 9)
  t.notOk(existsSync(folder))
  t.throws(() => neighbour.usage(), /is not running/)
})

void t.test('one that cannot be started, or ends at once, is told', async (t) => {
  const folder = t.testdir({})
  await t.rejects(startVictoriaLogs(join(folder, 'none')), /ENOENT/)
  const ends = programIn(folder, 'ends.cjs', `#!${process.execPath}\nprocess.exit(3)\n`)
  await t.rejects(startVictoriaLogs(ends), /ended at its start/)
})
