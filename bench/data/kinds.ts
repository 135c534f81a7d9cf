import type { Severity } from '../../src/model/event.js'

/** A message pattern: `<name>` stands for a value of values.ts. */
type Pattern = readonly [weight: number, severity: Severity, text: string]

export interface Kind {
  readonly name: string
  /** Share of the stream, relative to the others. */
  readonly weight: number
  readonly patterns: readonly Pattern[]
}

/** Sixteen kinds of systems. The texts are written for this bench in the style of such programs. */
export const KINDS: readonly Kind[] = [
  {
    name: 'sshd',
    weight: 8,
    patterns: [
      [40, 'INFO', 'Failed password for invalid user <guessed> from <client> port <port> ssh2'],
      [18, 'INFO', 'Accepted publickey for <user> from <inner> port <port> ssh2: ED25519 <finger>'],
      [14, 'INFO', 'Connection closed by authenticating user <guessed> <client> port <port> [preauth]'],
      [10, 'INFO', 'pam_unix(sshd:session): session opened for user <user>(uid=<pid>) by (uid=0)'],
      [10, 'INFO', 'pam_unix(sshd:session): session closed for user <user>'],
      [6, 'WARNING', 'reverse mapping checking getaddrinfo for host-<hex8>.example.net [<client>] failed, possible break-in attempt'],
      [4, 'ERROR', 'error: maximum authentication attempts exceeded for <guessed> from <client> port <port> ssh2 [preauth]'],
      [1, 'CRITICAL', 'fatal: mm_answer_sign: no host key could be loaded, pid <pid>'],
    ],
  },
  {
    name: 'kernel',
    weight: 6,
    patterns: [
      [20, 'INFO', '[<uptime>] IPv6: ADDRCONF(NETDEV_CHANGE): veth<hex8>: link becomes ready'],
      [16, 'INFO', '[<uptime>] br-<hex12>: port <few>(veth<hex8>) entered forwarding state'],
      [14, 'INFO', '[<uptime>] device veth<hex8> left promiscuous mode, hw address <mac>'],
      [10, 'WARNING', '[<uptime>] CPU<few>: Core temperature is above threshold, cpu clock is throttled (total events = <count>)'],
      [8, 'WARNING', '[<uptime>] TCP: request_sock_TCP: Possible SYN flooding on port <port>. Sending cookies.'],
      [5, 'ERROR', '[<uptime>] blk_update_request: I/O error, dev <disk>, sector <id> op 0x0:(READ) flags 0x80700'],
      [4, 'ERROR', '[<uptime>] EXT4-fs error (device <disk>): ext4_find_entry:1463: inode #<id>: comm java: reading directory lblock 0'],
      [2, 'CRITICAL', '[<uptime>] Out of memory: Killed process <pid> (java) total-vm:<bytes>kB, anon-rss:<bytes>kB, file-rss:<count>kB'],
      [6, 'DEBUG', '[<uptime>] audit: type=1400 apparmor="ALLOWED" operation="open" name="<file>" pid=<pid>'],
    ],
  },
  {
    name: 'hdfs-datanode',
    weight: 12,
    patterns: [
      [30, 'INFO', 'Receiving block <blk> src: /<inner>:<port> dest: /<inner>:50010 pipeline of <few>'],
      [26, 'INFO', 'PacketResponder <few> for block <blk> terminating after <ms> ms'],
      [24, 'INFO', 'Received block <blk> of size <bytes> from /<inner>:<port>, checksum CRC32C, stored on <mount>/dfs/current'],
      [14, 'INFO', 'Deleting block <blk> file <mount>/dfs/current/subdir<few>/<blk>'],
      [10, 'INFO', 'Verification succeeded for <blk>'],
      [5, 'WARNING', 'Slow BlockReceiver write packet to mirror took <ms>ms (threshold=300ms), block <blk>'],
      [2, 'ERROR', 'DataXceiver error processing WRITE_BLOCK operation src: /<inner>:<port> dst: /<inner>:50010; Connection reset by peer'],
    ],
  },
  {
    name: 'hdfs-namenode',
    weight: 6,
    patterns: [
      [30, 'INFO', 'BLOCK* NameSystem.addStoredBlock: blockMap updated: <inner>:50010 is added to <blk> size <bytes>'],
      [20, 'INFO', 'BLOCK* NameSystem.allocateBlock: /user/<user>/_temporary/attempt_<id>_m_<id>_<few>/part-<id>. <blk>'],
      [10, 'INFO', 'BLOCK* ask <inner>:50010 to replicate <blk> to datanode(s) <inner>:50010'],
      [6, 'INFO', 'Roll Edit Log from <inner>, segment of <count> transactions took <ms> ms'],
      [2, 'WARNING', 'Redundant addStoredBlock request received for <blk> on <inner>:50010 size <bytes>'],
    ],
  },
  {
    name: 'spark-executor',
    weight: 8,
    patterns: [
      [24, 'INFO', 'Running task <few>.0 in stage <count>.0 (TID <id>)'],
      [24, 'INFO', 'Finished task <few>.0 in stage <count>.0 (TID <id>). <count> bytes result sent to driver'],
      [14, 'INFO', 'Block rdd_<count>_<few> stored as values in memory (estimated size <count>.<few> KiB, free <count>.<few> GiB)'],
      [12, 'DEBUG', 'Getting <count> non-empty blocks including <few> local blocks and <count> remote blocks, fetched in <ms> ms'],
      [8, 'INFO', 'Input split: hdfs://<inner>:8020/user/<user>/events/part-<id>:0+<bytes>'],
      [4, 'WARNING', 'Spilling in-memory map of <count>.<few> MiB to disk (<few> times so far), thread <pid>'],
      [2, 'ERROR', 'Exception in task <few>.<few> in stage <count>.0 (TID <id>): org.apache.spark.shuffle.FetchFailedException: Failed to connect to <inner>:<port>'],
    ],
  },
  {
    name: 'zookeeper',
    weight: 5,
    patterns: [
      [22, 'INFO', 'Accepted socket connection from /<inner>:<port>'],
      [20, 'INFO', 'Closed socket connection for client /<inner>:<port> which had sessionid <session>'],
      [16, 'INFO', 'Established session <session> with negotiated timeout <ms> for client /<inner>:<port>'],
      [10, 'INFO', 'Expiring session <session>, timeout of <ms>ms exceeded'],
      [6, 'WARNING', 'caught end of stream exception: Unable to read additional data from client sessionid <session>, likely client has closed socket'],
      [4, 'WARNING', 'fsync-ing the write ahead log in SyncThread:<few> took <ms>ms which will adversely affect operation latency'],
      [1, 'ERROR', 'Unexpected exception causing shutdown while sock still open, peer <few>, last zxid <session>'],
    ],
  },
  {
    name: 'nginx',
    weight: 18,
    patterns: [
      [60, 'INFO', '<client> - - "<verb> <route>/<id> HTTP/1.1" <ok> <bytes> "-" "<agent>" rt=<few>.<ms> up=<inner>:8080'],
      [14, 'INFO', '<client> - <user> "<verb> <route>?page=<few>&q=<hex8> HTTP/2.0" <ok> <bytes> "-" "<agent>" rt=<few>.<ms>'],
      [8, 'WARNING', '<client> - - "<verb> <route>/<hex8> HTTP/1.1" <bad> <count> "-" "<agent>" rt=0.<ms>'],
      [4, 'ERROR', '<client> - - "<verb> <route>/<id> HTTP/1.1" <down> <count> "-" "<agent>" rt=<seconds>'],
      [3, 'ERROR', '<pid>#<pid>: *<id> upstream timed out (110: Connection timed out) while reading response header from upstream, client: <client>, upstream: "http://<inner>:8080<route>"'],
      [2, 'WARNING', '<pid>#<pid>: *<id> a client request body is buffered to a temporary file /var/cache/nginx/client_temp/<id>'],
    ],
  },
  {
    name: 'postgresql',
    weight: 8,
    patterns: [
      [20, 'INFO', '[<pid>] <user>@shop <inner>(<port>) LOG: duration: <ms>.<count> ms execute S_<few>: SELECT * FROM <table> WHERE id = $1 LIMIT <count>'],
      [16, 'INFO', '[<pid>] LOG: connection authorized: user=<user> database=shop application_name=<service>'],
      [10, 'INFO', '[<pid>] LOG: automatic vacuum of table "shop.public.<table>": index scans: <few>, pages: <count> removed, <id> remain'],
      [8, 'INFO', '[<pid>] LOG: checkpoint complete: wrote <count> buffers (<percent>.<few>%); write=<seconds> s, sync=0.<ms> s, total=<seconds> s; lsn=<lsn>'],
      [5, 'WARNING', '[<pid>] WARNING: there is no transaction in progress, session <hex8>.<hex8>'],
      [6, 'ERROR', '[<pid>] ERROR: duplicate key value violates unique constraint "<table>_pkey", key (id)=(<id>) already exists'],
      [4, 'ERROR', '[<pid>] ERROR: deadlock detected: process <pid> waits for ShareLock on transaction <id>; blocked by process <pid>'],
      [1, 'CRITICAL', '[<pid>] FATAL: sorry, too many clients already'],
      [1, 'CRITICAL', '[<pid>] PANIC: could not write to file "pg_wal/xlogtemp.<pid>": No space left on device'],
    ],
  },
  {
    name: 'kubelet',
    weight: 8,
    patterns: [
      [20, 'INFO', '"SyncLoop (PLEG): event for pod" pod="shop/<pod>" event={"ID":"<uuid>","Type":"ContainerStarted","Data":"<sha>"}'],
      [14, 'INFO', '"Pulled image for container" image="registry.shop.example/<service>:<hex8>" pod="shop/<pod>" elapsed="<seconds>s"'],
      [12, 'INFO', 'MountVolume.SetUp succeeded for volume "kube-api-access-<hex8>" (UniqueName: "kubernetes.io/projected/<uuid>") pod "<pod>"'],
      [8, 'WARNING', 'Readiness probe failed for pod "shop/<pod>" container <service>: HTTP probe failed with statuscode: <down>'],
      [4, 'ERROR', '"Error syncing pod, skipping" err="failed to \\"StartContainer\\" for \\"<service>\\" with CrashLoopBackOff: back-off <few>m0s" pod="shop/<pod>" podUID="<uuid>"'],
      [2, 'ERROR', 'Eviction manager: attempting to reclaim ephemeral-storage on node, <percent>% used on <mount>'],
      [6, 'DEBUG', '"Generating status" podIsTerminal=false pod="shop/<pod>"'],
    ],
  },
  {
    name: 'order-service',
    weight: 10,
    patterns: [
      [26, 'INFO', '[<hex12>] <class> - order <id> placed by customer <id>: <few> items, total <count>.<percent> EUR, took <ms> ms'],
      [18, 'DEBUG', '[<hex12>] <class> - cache miss for key product:<id>, loading from <table> (<ms> ms)'],
      [12, 'INFO', '[<hex12>] <class> - payment <uuid> authorised by gateway in <ms> ms'],
      [8, 'WARNING', '<class> - retry <few> of 5 for request <uuid> after <ms> ms: gateway answered <down>'],
      [5, 'ERROR', '<class> - order <id> failed: <fault>\n\tat <class>.place(OrderService.java:<count>)\n\tat <class>.handle(Dispatcher.java:<count>)'],
      [1, 'CRITICAL', '<class> - circuit breaker for <service> is open after <count> failures, orders are queued'],
    ],
  },
  {
    name: 'payments-api',
    weight: 6,
    patterns: [
      [26, 'INFO', 'request_id=<uuid> method=<verb> path=<route> status=<ok> duration_ms=<ms> user=<user> client=<client> bytes=<bytes>'],
      [6, 'WARNING', 'request_id=<uuid> method=<verb> path=<route> status=<bad> duration_ms=<ms> reason="card declined" user=<user>'],
      [3, 'ERROR', 'request_id=<uuid> method=<verb> path=<route> status=<down> duration_ms=<ms> error="upstream <service> unavailable"'],
      [6, 'INFO', 'settlement batch <id> closed: <count> payments, <count>.<percent> EUR, ledger entry <uuid>'],
      [8, 'DEBUG', 'idempotency key <hex12> seen first, storing for <count> s'],
    ],
  },
  {
    name: 'nova-compute',
    weight: 5,
    patterns: [
      [18, 'INFO', '[instance: <uuid>] VM Started (Lifecycle Event)'],
      [14, 'INFO', '[instance: <uuid>] Took <seconds> seconds to spawn the instance on the hypervisor.'],
      [12, 'INFO', '[req-<uuid> <hex12> <hex12> - - -] <inner> "GET /v2/<hex12>/servers/detail HTTP/1.1" status: <ok> len: <count> time: 0.<id>'],
      [8, 'INFO', 'Final resource view: name=<hex8> phys_ram=<count>MB used_ram=<count>MB phys_disk=<count>GB used_disk=<few>GB total_vcpus=<percent> used_vcpus=<few>'],
      [3, 'WARNING', 'While synchronizing instance power states, found <count> instances in the database and <count> instances on the hypervisor.'],
      [1, 'ERROR', '[instance: <uuid>] Instance failed to spawn: Unable to establish connection to http://<inner>:9696/v2.0/ports'],
    ],
  },
  {
    name: 'kafka-broker',
    weight: 6,
    patterns: [
      [18, 'INFO', '[Log partition=<topic>-<few>, dir=<mount>/kafka] Rolled new log segment at offset <id> in <ms> ms.'],
      [14, 'INFO', '[GroupCoordinator <few>]: Preparing to rebalance group <service> in state PreparingRebalance with old generation <count>'],
      [12, 'INFO', '[GroupCoordinator <few>]: Stabilized group <service> generation <count> (__consumer_offsets-<few>) with <few> members'],
      [8, 'DEBUG', '[ReplicaFetcher replicaId=<few>, leaderId=<few>] Follower <topic>-<few> has replica log end offset <id>'],
      [4, 'WARNING', '[ReplicaManager broker=<few>] Shrinking ISR of partition <topic>-<few>, lag <count> messages, fenced after <ms> ms'],
      [1, 'ERROR', '[ReplicaManager broker=<few>] Error processing append operation on partition <topic>-<few>: NotEnoughReplicasException'],
    ],
  },
  {
    name: 'redis',
    weight: 3,
    patterns: [
      [14, 'INFO', '<pid>:M * <count> changes in <count> seconds. Saving...'],
      [14, 'INFO', '<pid>:M * Background saving started by pid <pid>'],
      [12, 'INFO', '<pid>:C * DB saved on disk, <few> MB of memory used by copy-on-write'],
      [8, 'INFO', 'Background saving terminated with success'],
      [3, 'WARNING', '<pid>:M # WARNING: Client id=<id> addr=<inner>:<port> scheduled to be closed ASAP for overcoming of output buffer limits.'],
    ],
  },
  {
    name: 'systemd',
    weight: 6,
    patterns: [
      [18, 'INFO', 'Started Session <count> of User <user>.'],
      [14, 'INFO', 'run-docker-runtime\\x2drunc-moby-<hex12>.mount: Deactivated successfully.'],
      [12, 'INFO', 'Finished Rotate log files.'],
      [10, 'INFO', '<service>.service: Consumed <seconds>s CPU time, <count>.<few>M memory peak.'],
      [4, 'WARNING', '<service>.service: Main process exited, code=exited, status=<few>/FAILURE'],
      [2, 'ERROR', 'Failed to start <service>.service: Unit has a bad unit file setting.'],
      [1, 'ERROR', '<service>.service: Start request repeated too quickly.'],
    ],
  },
  {
    name: 'night-batch',
    weight: 5,
    patterns: [
      [18, 'INFO', 'job=<service>-export step=<few> rows=<id> elapsed=<clock> file=<file> status=ok'],
      [10, 'INFO', 'Prüfsumme für <file> stimmt überein: <hex12> (<count> Zeilen, <ms> ms)'],
      [10, 'DEBUG', 'heap after GC: used <count>M of <count>M (<percent>%), pause <ms> ms, young <count>, old <few>'],
      [6, 'WARNING', 'smart: /dev/<disk> temperature <temp> Celsius, <count> reallocated sectors, next self-test at <clock>'],
      [3, 'ERROR', 'job=<service>-export step=<few> rejected record <id>: column "amount" holds "n/a", file <file> line <count>'],
    ],
  },
]
