/**
 * Deletes files from node_modules that this platform and this Node.js never load: the HTTP
 * library's binaries for others, and source maps. `--os=` and `--cpu=` name another platform. `npm
 * ci` restores all of it.
 */
import { readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: {
    os: { type: 'string', default: process.platform },
    cpu: { type: 'string', default: process.arch },
    dir: { type: 'string', default: 'node_modules' },
  },
})
const BINARY = /(?:^|[\\/])uws_\w+\.node$/
const own = `uws_${values.os}_${values.cpu}_${process.versions.modules}.node`

const files = readdirSync(values.dir, { recursive: true, encoding: 'utf8' })
const binaries = files.filter((name) => BINARY.test(name))
const others = binaries.filter((name) => !name.endsWith(own))
if (binaries.length > 0 && others.length === binaries.length) {
  process.stderr.write(`${values.dir} has no ${own}: nothing is deleted\n`)
  process.exit(1)
}
let bytes = 0
for (const name of [
  ...others,
  ...files.filter((one) => /\.(?:js|mjs|cjs|ts|css)\.map$/.test(one)),
]) {
  const path = join(values.dir, name)
  bytes += statSync(path).size
  rmSync(path)
}
process.stdout.write(`${Math.round(bytes / 1e6)} MB less in ${values.dir}\n`)
