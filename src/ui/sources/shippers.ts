interface Target {
  readonly address: string
  readonly key: string
}

interface Shipper {
  readonly name: string
  readonly note: string
  readonly text: (target: Target) => string
}

/** The shippers with their complete configurations. */
export const SHIPPERS = {
  curl: {
    name: 'curl',
    note: 'One JSON object a line. A source is registered when it first sends.',
    text: ({ address, key }) =>
      [
        `curl -s ${address}/ingest \\`,
        `  -H "Authorization: Bearer ${key}" \\`,
        `  -d '{"source":"shop","severity":"ERROR","message":"payment timed out after 3000 ms"}'`,
      ].join('\n'),
  },
  vector: {
    name: 'Vector',
    note: 'Add it to vector.yaml. The field names of common loggers need no mapping.',
    text: ({ address, key }) =>
      [
        'sources:',
        '  app:',
        '    type: file',
        '    include: [/var/log/app/*.log]',
        'sinks:',
        '  log_analytics:',
        '    type: http',
        '    inputs: [app]',
        `    uri: ${address}/ingest?source=app`,
        '    auth:',
        '      strategy: bearer',
        `      token: ${key}`,
        '    encoding:',
        '      codec: json',
        '    framing:',
        '      method: newline_delimited',
        '    compression: gzip',
      ].join('\n'),
  },
  fluentbit: {
    name: 'Fluent Bit',
    note: 'Add it to fluent-bit.conf.',
    text: ({ address, key }) => {
      const { hostname, port } = URL.canParse(address)
        ? new URL(address)
        : { hostname: '127.0.0.1', port: '8080' }
      return [
        '[INPUT]',
        '    Name    tail',
        '    Path    /var/log/app/*.log',
        '[OUTPUT]',
        '    Name    http',
        '    Match   *',
        `    Host    ${hostname}`,
        `    Port    ${port}`,
        '    URI     /ingest?source=app',
        '    Format  json_lines',
        `    Header  Authorization Bearer ${key}`,
      ].join('\n')
    },
  },
  otel: {
    name: 'OpenTelemetry',
    note: 'Of the Collector: add the exporter to its pipelines. SDKs take the same address and header.',
    text: ({ address, key }) =>
      [
        'exporters:',
        '  otlphttp/log_analytics:',
        `    endpoint: ${address}`,
        '    headers:',
        `      Authorization: Bearer ${key}`,
        'service:',
        '  pipelines:',
        '    logs:',
        '      receivers: [otlp]',
        '      exporters: [otlphttp/log_analytics]',
        '    traces:',
        '      receivers: [otlp]',
        '      exporters: [otlphttp/log_analytics]',
      ].join('\n'),
  },
  node: {
    name: 'Node.js',
    note: 'For a program without a logger; what a logger writes is better sent by one of the others.',
    text: ({ address, key }) =>
      [
        `await fetch('${address}/ingest', {`,
        "  method: 'POST',",
        `  headers: { authorization: 'Bearer ${key}' },`,
        "  body: JSON.stringify({ source: 'shop', severity: 'INFO', message: 'order 1001 paid' }),",
        '})',
      ].join('\n'),
  },
} as const satisfies Record<string, Shipper>

export type ShipperName = keyof typeof SHIPPERS
