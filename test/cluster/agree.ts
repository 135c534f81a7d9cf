import { contradictions } from '../faults/count.js'
import { tablesOf } from '../faults/installation.js'
import type { TestCluster } from '../support/cluster.js'

/** Where the tables of a service on a cluster contradict each other; everything that was sent has to be stored. */
export async function contradictionsOn({
  env: {
    CLICKHOUSE_URL: url = '',
    CLICKHOUSE_USER: username = '',
    CLICKHOUSE_PASSWORD: password = '',
  },
}: Pick<TestCluster, 'env'>): Promise<readonly string[]> {
  const tables = tablesOf({ url, username, password })
  try {
    return await contradictions(tables.query)
  } finally {
    await tables.close()
  }
}
