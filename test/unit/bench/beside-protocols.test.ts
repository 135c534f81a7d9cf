import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { PROTOCOLS } from '../../../bench/data/protocol-bodies.js'
import { bodiesOf, sendBodies } from '../../../bench/flow/beside-protocols.js'
import { startVictoriaLogs } from '../../../bench/lib/victorialogs.js'
import { freePort } from '../../support/ports.js'

/** Takes what VictoriaLogs takes, and writes down where each body came and how long it was. */
const PROGRAM = `#!${process.execPath}
const http = require('node:http')
const net = require('node:net')
const { appendFileSync } = require('node:fs')
const argument = (name) => process.argv.find((one) => one.startsWith('-' + name + '=')).slice(name.length + 2)
const seen = __dirname + '/seen'
const port = (name) => Number(argument(name).split(':')[1])
process.on('SIGINT', () => process.exit(0))
http.createServer(async (request, reply) => {
  let bytes = 0
  for await (const chunk of request) bytes += chunk.length
  if (request.method === 'POST') appendFileSync(seen, request.url + ' ' + bytes + '\\n')
  if (request.url.startsWith('/select/')) reply.end('{"counted":"7"}')
  else reply.writeHead(request.url.includes('/loki/') ? 204 : 200).end()
}).listen(port('httpListenAddr'), '127.0.0.1')
net.createServer({ allowHalfOpen: true }, (socket) => {
  let bytes = 0
  socket.on('data', (chunk) => (bytes += chunk.length))
  socket.on('end', () => {
    appendFileSync(seen, 'tcp ' + bytes + '\\n')
    socket.end()
  })
}).listen(port('syslog.listenAddr.tcp'), '127.0.0.1')
`

void t.test('the bodies of each protocol go where VictoriaLogs takes them', async (t) => {
  const folder = t.testdir({ seen: '' })
  const program = join(folder, 'neighbour.cjs')
  writeFileSync(program, PROGRAM)
  chmodSync(program, 0o755)
  const syslogPort = await freePort()
  const neighbour = await startVictoriaLogs(program, syslogPort)
  const options = { events: 200, sources: 2, spanS: 60, bodyBytes: 10_000, attributes: 1 }
  for (const protocol of PROTOCOLS) {
    writeFileSync(join(folder, 'seen'), '')
    const bodies = bodiesOf(protocol, options, 1)
    t.ok(bodies.length > 2)
    await sendBodies(neighbour, { protocol, bodies, syslogPort, connections: 2 })
    const seen = readFileSync(join(folder, 'seen'), 'utf8').trim().split('\n')
    const bytes = seen.map((line) => Number(line.split(' ')[1])).reduce((a, b) => a + b, 0)
    t.equal(bytes, Buffer.concat(bodies).length)
    const places = new Set(seen.map((line) => line.split(/[ ?]/)[0]))
    t.same([...places], [PLACES[protocol]])
  }
  t.equal(await neighbour.count(), 7)
  await neighbour.stop()
})

const PLACES = {
  ndjson: '/insert/jsonline',
  otlp: '/insert/opentelemetry/v1/logs',
  loki: '/insert/loki/api/v1/push',
  es: '/insert/elasticsearch/_bulk',
  syslog: 'tcp',
}
