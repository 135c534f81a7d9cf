import { createHash } from 'node:crypto'
import { availableParallelism, totalmem } from 'node:os'
import type { S3 } from '../../settings/cold.js'
import { COLD_DISK } from '../cold-disk.js'

const MIB = 1024 * 1024

export interface EmbeddedConfig {
  /** The directory of ClickHouse's own files: tables, metadata, its lock. */
  readonly clickhouseDir: string
  readonly usersFile: string
  /** The only directory where backups are written and read. */
  readonly backupsDir: string
  /** The HTTP port; 0 for any free one. */
  readonly httpPort: number
  /** The port of the native protocol; null for none. */
  readonly tcpPort: number | null
  readonly username: string
  readonly password: string
  readonly resources: EmbeddedResources
  /** A whole `<remote_servers>` element, '' for none. */
  readonly remoteServers: string
  /** The bucket of cold events and backups; null when there are no such disks. */
  readonly s3: S3 | null
}

/** The disk of backups on S3. */
export const BACKUP_DISK = 's3_backups'

export interface EmbeddedResources {
  /** The most memory that the engine may allocate. */
  readonly memoryBytes: number
  /** Threads of background merges, at least 2. */
  readonly mergeThreads: number
}

/**
 * Shares the machine between the engine and the service: half of the memory, at least 1 GiB
 * (below that even small merges fail), and merge threads for every core.
 */
export function machineResources(): EmbeddedResources {
  const limitBytes = process.constrainedMemory()
  const totalBytes = limitBytes > 0 ? Math.min(limitBytes, totalmem()) : totalmem()
  return {
    memoryBytes: Math.max(1024 * MIB, Math.floor(totalBytes / 2)),
    mergeThreads: Math.min(Math.max(availableParallelism(), 2), 16),
  }
}

/** The configuration file of the engine. Holds the password: write it with mode 0600. */
export function configXml(config: EmbeddedConfig): string {
  return `<clickhouse>
  <!-- Loopback only: other machines talk to the service, never to its engine. -->
  <listen_host>127.0.0.1</listen_host>
  <http_port>${config.httpPort}</http_port>
  ${config.tcpPort === null ? '' : `<tcp_port>${config.tcpPort}</tcp_port>`}
  <path>${text(config.clickhouseDir)}/</path>
  <tmp_path>${text(config.clickhouseDir)}/tmp/</tmp_path>
  <user_files_path>${text(config.clickhouseDir)}/user_files/</user_files_path>
  <users_config>${text(config.usersFile)}</users_config>
  <backups>
    <allowed_path>${text(config.backupsDir)}/</allowed_path>
    ${config.s3 === null ? '' : `<allowed_disk>${BACKUP_DISK}</allowed_disk>`}
  </backups>
  ${config.s3 === null ? '' : storageXml(config.s3)}
  <!-- Days and hours are those of UTC whatever the machine is set to. -->
  <timezone>UTC</timezone>
  <!-- No <logger>: with one, the engine writes its trace to stderr. Its system tables of logs
       exist only when configured, and none is: they grow without bound. -->
  <send_crash_reports><enabled>false</enabled></send_crash_reports>

  ${resourcesXml(config.resources, config.s3 !== null)}
  <!-- Each takes a thread, idle ones too. Its own process ends those of others before they are so many. -->
  <max_connections>1024</max_connections>
  <max_concurrent_queries>100</max_concurrent_queries>
  <!-- Longer than the client keeps an idle connection, so that it is never the engine that
       closes one just when it is used again. -->
  <keep_alive_timeout>60</keep_alive_timeout>

  ${handlersXml(config)}
  ${config.remoteServers}
</clickhouse>
`
}

function resourcesXml({ memoryBytes, mergeThreads }: EmbeddedResources, hasS3: boolean): string {
  const cache = (share: number, maxMib: number): number =>
    Math.floor(Math.min(memoryBytes * share, maxMib * MIB))
  return `<!-- The service needs the other half of the machine. -->
  <max_server_memory_usage>${memoryBytes}</max_server_memory_usage>
  <!-- How often it reads what it holds; the default, 20 times a second, is most of what it does at rest. -->
  <memory_worker_period_ms>500</memory_worker_period_ms>
  <!-- The defaults (5 GiB each) are made for machines with hundreds of GiB. -->
  <mark_cache_size>${cache(0.05, 512)}</mark_cache_size>
  <primary_index_cache_size>${cache(0.05, 512)}</primary_index_cache_size>
  <index_mark_cache_size>${cache(0.02, 128)}</index_mark_cache_size>
  <!-- The kernel already holds the compressed files. The filters of words are read whole by each search of a rare one. -->
  <uncompressed_cache_size>0</uncompressed_cache_size>
  <index_uncompressed_cache_size>${cache(0.04, 512)}</index_uncompressed_cache_size>
  <compiled_expression_cache_size>${cache(0.01, 64)}</compiled_expression_cache_size>

  <!-- Merges run beside inserts; more threads than cores only take turns. -->
  <background_pool_size>${mergeThreads}</background_pool_size>
  <background_merges_mutations_concurrency_ratio>2</background_merges_mutations_concurrency_ratio>
  <!-- 2, the default of clickhouse-local, is so few that the engine pauses its own tasks. -->
  <background_schedule_pool_size>16</background_schedule_pool_size>
  <background_common_pool_size>2</background_common_pool_size>
  <background_move_pool_size>1</background_move_pool_size>
  <background_fetches_pool_size>1</background_fetches_pool_size>
  <merge_tree>
    <!-- Their defaults (8, 20, 25 free threads) can never be met by a small pool, and then
         large merges and mutations would wait for ever. -->
    <number_of_free_entries_in_pool_to_lower_max_size_of_merge>2</number_of_free_entries_in_pool_to_lower_max_size_of_merge>
    <number_of_free_entries_in_pool_to_execute_mutation>2</number_of_free_entries_in_pool_to_execute_mutation>
    <number_of_free_entries_in_pool_to_execute_optimize_entire_partition>2</number_of_free_entries_in_pool_to_execute_optimize_entire_partition>
    <!-- By default a part's keys are read when the first question comes, which needs those of all parts: it would fail while S3 is away. -->
    <primary_key_lazy_load>${hasS3 ? 0 : 1}</primary_key_lazy_load>
    <!-- A changed retention rewrites the dates of parts, never their rows. -->
    <materialize_ttl_recalculate_only>1</materialize_ttl_recalculate_only>
    <!-- Twelve parts of a size become one, instead of five: rows are rewritten less often, and there
         are a few more parts to read (bench/NOTES.md). -->
    <merge_selector_base>12</merge_selector_base>
    <!-- The engine removes what it has merged after half a minute, about when the kernel would write the new part:
         a power failure in between would leave neither. -->
    <min_rows_to_fsync_after_merge>1</min_rows_to_fsync_after_merge>
    <!-- Otherwise each start lists the bucket of the backups once for every table. -->
    <search_orphaned_parts_disks>none</search_orphaned_parts_disks>
    <!-- No query of ours is planned by them, and every part of every table would count its values. -->
    <auto_statistics_types></auto_statistics_types>
    <!-- Buffers of the columns that a part is written from begin small. By default each has 1 MiB, of 100 columns and more for an
         insert, which takes 260 MiB for 24 MiB of rows in place of 160 (bench/NOTES.md). -->
    <min_columns_to_activate_adaptive_write_buffer>1</min_columns_to_activate_adaptive_write_buffer>
  </merge_tree>`
}

/**
 * The storage of tables, whose policy is `default`. Nothing moves to the disk `cold` by itself.
 * Parts there are not merged, because a merge would download them. The start does not check the
 * bucket by writing to it, so that unreadable parts are reported by name.
 */
function storageXml(s3: S3): string {
  const access = `<access_key_id>${text(s3.accessKeyId)}</access_key_id>
        <secret_access_key>${text(s3.secretAccessKey)}</secret_access_key>
        ${s3.region === '' ? '' : `<region>${text(s3.region)}</region>`}
        <skip_access_check>1</skip_access_check>
        <connect_timeout_ms>3000</connect_timeout_ms>`
  return `<storage_configuration>
    <disks>
      <${COLD_DISK}>
        <type>s3</type>
        <endpoint>${text(s3.url)}cold/</endpoint>
        ${access}
        <!-- A read is tried twice, each time with two requests: when S3 is silent, a question fails within half a minute. -->
        <request_timeout_ms>4000</request_timeout_ms>
        <s3_retry_attempts>2</s3_retry_attempts>
        <s3_max_single_read_retries>2</s3_max_single_read_retries>
      </${COLD_DISK}>
      <${BACKUP_DISK}>
        <type>s3_plain</type>
        <endpoint>${text(s3.url)}backups/</endpoint>
        ${access}
      </${BACKUP_DISK}>
    </disks>
    <policies>
      <default>
        <volumes>
          <hot><disk>default</disk></hot>
          <cold><disk>${COLD_DISK}</disk><prefer_not_to_merge>1</prefer_not_to_merge></cold>
        </volumes>
        <move_factor>0</move_factor>
      </default>
    </policies>
  </storage_configuration>`
}

function handlersXml(config: EmbeddedConfig): string {
  return `<!-- Anyone on the machine can reach the port, and the engine runs its first queries as a user
       without a password. So a request is processed only with our credentials. -->
  <http_handlers>
    <rule>
      <headers><Authorization>${text(basicAuth(config.username, config.password))}</Authorization></headers>
      <handler><type>dynamic_query_handler</type><query_param_name>query</query_param_name></handler>
    </rule>
    <rule>
      <handler>
        <type>static</type><status>401</status><content_type>text/plain; charset=utf-8</content_type>
        <response_content>authentication required</response_content>
      </handler>
    </rule>
  </http_handlers>`
}

/** The users of the engine: the service's, and the one that runs the engine's own first queries. */
export function usersXml(config: EmbeddedConfig): string {
  const passwordHash = createHash('sha256').update(config.password).digest('hex')
  const queryBytes = Math.floor(config.resources.memoryBytes * 0.6)
  return `<clickhouse>
  <profiles>
    <default>
      <!-- One query cannot take everything; what is too big for memory goes to disk. -->
      <max_memory_usage>${queryBytes}</max_memory_usage>
      <max_bytes_before_external_group_by>${Math.floor(queryBytes / 2)}</max_bytes_before_external_group_by>
      <max_bytes_before_external_sort>${Math.floor(queryBytes / 2)}</max_bytes_before_external_sort>
      <log_queries>0</log_queries>
      <!-- Compiling expressions to machine code costs more than our queries gain by it (bench/NOTES.md). -->
      <compile_expressions>0</compile_expressions>
      <compile_aggregate_expressions>0</compile_aggregate_expressions>
      <compile_sort_description>0</compile_sort_description>
      <!-- S3 that is away is said within seconds. By default each request is tried 500 times, and all threads wait. -->
      <s3_retry_attempts>3</s3_retry_attempts>
      <s3_slow_all_threads_after_network_error>0</s3_slow_all_threads_after_network_error>
      <s3_slow_all_threads_after_retryable_error>0</s3_slow_all_threads_after_retryable_error>
    </default>
  </profiles>
  <quotas><default></default></quotas>
  <users>
    <${config.username}>
      <password_sha256_hex>${passwordHash}</password_sha256_hex>
      <networks><ip>127.0.0.1</ip></networks>
      <profile>default</profile>
      <quota>default</quota>
      <grants>
        <query>GRANT ALL ON *.*</query>
        <!-- Files, web addresses and other databases are nothing a query of ours reads. -->
        <query>REVOKE SOURCES ON *.*</query>
        ${config.tcpPort === null ? '' : '<query>GRANT REMOTE ON *.*</query>'}
      </grants>
    </${config.username}>
    <!-- Runs START LISTEN and the query that keeps the engine alive, and may do nothing else. -->
    <default>
      <no_password/>
      <networks><ip>127.0.0.1</ip></networks>
      <profile>default</profile>
      <quota>default</quota>
      <grants>
        <query>GRANT SYSTEM LISTEN ON *.*</query>
        <query>GRANT SELECT ON system.numbers</query>
      </grants>
    </default>
  </users>
</clickhouse>
`
}

const basicAuth = (username: string, password: string): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }

const text = (value: string): string => value.replace(/[&<>]/g, (char) => ESCAPES[char] ?? char)
