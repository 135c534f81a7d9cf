import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { test, type Test } from 'tap'
import { openBucket } from '../../../src/clickhouse/bucket.js'
import { whileCollecting } from '../../support/garbage.js'

async function portOf(t: Test, server: Server): Promise<number> {
  const open = new Set<Socket>()
  server.on('connection', (socket: Socket) => open.add(socket))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.close()
    for (const socket of open) socket.destroy()
  })
  return (server.address() as AddressInfo).port // It listens on a port.
}

const bucketAt = (port: number) =>
  openBucket({
    url: `http://127.0.0.1:${port}/logs/`,
    accessKeyId: 'a',
    secretAccessKey: 'b',
    region: '',
  })

void test('an S3 that answers nothing is given up, whatever the garbage collector takes', async (t) => {
  const port = await portOf(t, createServer())
  await t.rejects(whileCollecting(bucketAt(port).check()), {
    message: `S3 at 127.0.0.1:${port} does not answer (TimeoutError)`,
  })
})

void test('what a busy S3 refuses is tried again, three times', async (t) => {
  const left = [503, 429, 500, 200]
  const bodies: string[] = []
  const server = createHttpServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk))
    request.once('end', () => {
      bodies.push(body)
      response.writeHead(left.shift() ?? 503).end('<Code>SlowDown</Code>')
    })
  })
  const bucket = bucketAt(await portOf(t, server))
  await bucket.put('monday/manifest', new Uint8Array(Buffer.from('text')))
  t.same(bodies, ['text', 'text', 'text', 'text'])
  await t.rejects(bucket.put('monday/manifest', new Uint8Array()), {
    message: /answered 503 \(SlowDown\)$/,
  })
  t.equal(bodies.length, 8)
})
