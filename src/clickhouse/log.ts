/** The part of a pino logger that ClickHouse's modules use. */
export interface StoreLog {
  debug(fields: object, text: string): void
  info(fields: object, text: string): void
  warn(fields: object, text: string): void
}
