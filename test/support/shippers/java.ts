import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { INGEST_KEY } from '../service.js'
import type { SentRecord } from './records.js'
import { runToEnd } from './syslog.js'

const JARS = '/usr/share/java'
const JACKSON = ['jackson-core', 'jackson-databind', 'jackson-annotations']

interface JavaLogger {
  readonly jars: readonly string[]
  /** The property that names the file of the configuration. */
  readonly property: string
  /** Logs each record: `log(level, message, seq)`. */
  readonly program: string
}

const program = (imports: string, log: string, end: string): string => `
import java.io.*; import java.util.*; ${imports}
public class Send { public static void main(String[] args) throws Exception {
  var in = new BufferedReader(new InputStreamReader(System.in));
  ${log}
  for (String line; (line = in.readLine()) != null; ) {
    String[] parts = line.split(" ");
    log.accept(parts, new String(Base64.getDecoder().decode(parts[2]), "UTF-8"));
  }
  ${end}
} }`

const LOG4J: JavaLogger = {
  jars: ['log4j-api', 'log4j-core', ...JACKSON],
  property: 'log4j2.configurationFile',
  program: program(
    'import org.apache.logging.log4j.*;',
    `var logger = LogManager.getLogger("shop.Cart");
     java.util.function.BiConsumer<String[], String> log = (parts, message) -> {
       ThreadContext.put("trace_id", parts[1]); ThreadContext.put("seq", parts[3]);
       logger.log(Level.valueOf(parts[0]), message); };`,
    'LogManager.shutdown();',
  ),
}

const LOGBACK: JavaLogger = {
  jars: [
    'logback-core',
    'logback-classic',
    'slf4j-api',
    'logstash-logback-encoder',
    'disruptor',
    ...JACKSON,
  ],
  property: 'logback.configurationFile',
  program: program(
    'import org.slf4j.*; import org.slf4j.event.Level; import ch.qos.logback.classic.LoggerContext;',
    `var logger = LoggerFactory.getLogger("shop.Cart");
     java.util.function.BiConsumer<String[], String> log = (parts, message) -> {
       MDC.put("trace_id", parts[1]); MDC.put("seq", parts[3]);
       switch (parts[0]) { case "DEBUG": logger.debug(message); break; case "INFO": logger.info(message); break;
         case "WARN": logger.warn(message); break; default: logger.error(message); } };`,
    // It connects in the background, and ends without waiting for its queue.
    'Thread.sleep(1500); ((LoggerContext) LoggerFactory.getILoggerFactory()).stop();',
  ),
}

const LEVELS = { debug: 'DEBUG', info: 'INFO', warning: 'WARN', error: 'ERROR', crit: 'FATAL' }

export const traceOf = ({ seq }: SentRecord): string => (seq + 1).toString(16).padStart(32, 'a')

async function sendByJava(
  { jars, property, program: text }: JavaLogger,
  configuration: string,
  records: readonly SentRecord[],
): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'java-'))
  const [file, source] = [join(dir, 'config.xml'), join(dir, 'Send.java')]
  writeFileSync(file, configuration)
  writeFileSync(source, text)
  const lines = records.map((record) => {
    const message = Buffer.from(record.message).toString('base64')
    return `${LEVELS[record.level]} ${traceOf(record)} ${message} ${record.seq}\n`
  })
  const classes = jars.map((jar) => `${JARS}/${jar}.jar`).join(':')
  try {
    await runToEnd('java', ['-cp', classes, `-D${property}=${file}`, source], lines.join(''))
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

interface Ports {
  readonly collector: string
  readonly syslog: number
  readonly gelf: number
  readonly lines: number
}

export const LOG4J_SOURCES = ['log4j-syslog', 'log4j-gelf', 'log4j-lines', 'log4j-http'] as const

/** Sends each record four times by log4j2, once with each appender of the guide. */
export const sendByLog4j = (
  { collector, syslog, gelf, lines }: Ports,
  records: readonly SentRecord[],
): Promise<void> => {
  const [a, b, c, d] = LOG4J_SOURCES
  const appenders = `
<Syslog name="${a}" format="RFC5424" host="127.0.0.1" port="${syslog}" protocol="TCP" appName="${a}" newLine="true"/>
<Socket name="${b}" host="127.0.0.1" port="${gelf}" protocol="tcp"><GelfLayout includeNullDelimiter="true" compressionType="OFF" host="web-1"><KeyValuePair key="app" value="${b}"/></GelfLayout></Socket>
<Socket name="${c}" host="127.0.0.1" port="${lines}" protocol="tcp"><JsonLayout compact="true" eventEol="true" properties="true"><KeyValuePair key="app" value="${c}"/></JsonLayout></Socket>
<Http name="${d}" url="${collector}/ingest?source=${d}"><Property name="Authorization" value="Bearer ${INGEST_KEY}"/><JsonLayout compact="true" properties="true"><KeyValuePair key="host" value="\${hostName}"/></JsonLayout></Http>`
  const references = LOG4J_SOURCES.map((name) => `<AppenderRef ref="${name}"/>`).join('')
  const loggers = `<Loggers><Root level="debug">${references}</Root></Loggers>`
  const configuration = `<Configuration status="warn"><Appenders>${appenders}</Appenders>${loggers}</Configuration>`
  return sendByJava(LOG4J, configuration, records)
}

/** Sends the records by Logback with the encoder of Logstash. */
export const sendByLogback = (port: number, records: readonly SentRecord[]): Promise<void> =>
  sendByJava(
    LOGBACK,
    `<configuration><appender name="logs" class="net.logstash.logback.appender.LogstashTcpSocketAppender">
<destination>127.0.0.1:${port}</destination>
<encoder class="net.logstash.logback.encoder.LogstashEncoder"><customFields>{"app":"logback"}</customFields></encoder>
</appender><root level="DEBUG"><appender-ref ref="logs"/></root></configuration>`,
    records,
  )
