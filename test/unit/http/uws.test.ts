import t from 'tap'
import { loadUws } from '../../../src/http/uws.js'

t.test('a build loads, says which it is, and has what the HTTP server uses', async (t) => {
  const env: Record<string, string | undefined> = {}
  const { addon, build } = loadUws(env)
  t.match(build, /^[\w@./-]+ \d+\.\d+\.\d+/)
  t.type(addon.App, 'function')
  t.type(addon.getParts, 'function')
  t.equal(addon.LIBUS_LISTEN_EXCLUSIVE_PORT, 1)
  t.ok(Number(env['UWS_HTTP_MAX_HEADERS_SIZE']) >= 65_536)
})

t.test('a header limit that the environment sets is kept', async (t) => {
  const env = { UWS_HTTP_MAX_HEADERS_SIZE: '8192' }
  loadUws(env)
  t.equal(env.UWS_HTTP_MAX_HEADERS_SIZE, '8192')
})
