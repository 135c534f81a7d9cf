declare module 'winston-syslog' {
  import type { transports } from 'winston'
  type Transport = InstanceType<typeof transports.Console>
  export const Syslog: new (options: Readonly<Record<string, string | number>>) => Transport
}
