import t from 'tap'
import {
  configXml,
  machineResources,
  usersXml,
} from '../../../../src/clickhouse/embedded/config.js'

const config = {
  clickhouseDir: '/data/a & <b>/clickhouse',
  usersFile: '/data/users.xml',
  backupsDir: '/data/backups',
  httpPort: 18_123,
  tcpPort: null,
  username: 'someone',
  password: 'p<w&d',
  resources: { memoryBytes: 2 ** 31, mergeThreads: 2 },
  remoteServers: '',
  s3: null,
}

t.test('paths with the characters of XML are escaped', async (t) => {
  t.match(configXml(config), '<path>/data/a &amp; &lt;b&gt;/clickhouse/</path>')
})

t.test('the engine listens on the loopback address only, natively only when asked', async (t) => {
  const hosts = configXml(config).match(/<listen_host>[^<]*/g)
  t.same(hosts, ['<listen_host>127.0.0.1'])
  t.notMatch(configXml(config), '<tcp_port>')
  t.match(configXml({ ...config, tcpPort: 19_000 }), '<tcp_port>19000</tcp_port>')
})

t.test('the password is in no file in the clear', async (t) => {
  t.notMatch(configXml(config) + usersXml(config), /p<w&d|p&lt;w&amp;d/)
})

t.test(
  'the machine is shared: the engine gets no more than half, and at least 1 GiB',
  async (t) => {
    const { memoryBytes, mergeThreads } = machineResources()
    t.ok(memoryBytes >= 2 ** 30)
    t.ok(Number.isInteger(memoryBytes) && mergeThreads >= 2)
  },
)
