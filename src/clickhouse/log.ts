/** What the store needs of a log; pino's loggers have this shape. */
export interface StoreLog {
  debug(fields: object, text: string): void
  info(fields: object, text: string): void
  warn(fields: object, text: string): void
}
