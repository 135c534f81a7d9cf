// Whether the process answers on its ports. Dependencies are not asked for: a restart does not bring them back,
// and without ClickHouse the collector goes on into its WAL.
const { ROLE = 'all', API_PORT = '8000', COLLECTOR_PORT = '8080' } = process.env

const answers = async (port, path) => {
  const reply = await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(4000) })
  const { status } = await reply.json()
  if (status === undefined) throw new Error(`port ${port} answers ${reply.status} without a status`)
}

if (ROLE !== 'collector') await answers(API_PORT, '/api/monitoring/health')
if (ROLE !== 'api') await answers(COLLECTOR_PORT, '/health')
