/**
 * The retention classes: the days after arrival that may be set for a source, an application or a
 * severity. They are few, because each class in use has a partition of its own a day.
 */
export const RETENTION_CLASSES = [1, 3, 7, 14, 30, 60, 90, 180, 365, 730, 1095, 1825, 3650] as const

export type RetentionClass = (typeof RETENTION_CLASSES)[number]

export const isRetentionClass = (days: number): days is RetentionClass =>
  RETENTION_CLASSES.some((one) => one === days)
