/** The counts of a KPI snapshot. Windows end with the current second. */
export interface KpiCounts {
  readonly stored: {
    readonly events: number
    readonly occurrences: number
    /** Events of ERROR and CRITICAL. */
    readonly errors: number
    /** Events below P1. */
    readonly routine: number
    /** Routine events whose priority has a confidence below 0.5. */
    readonly unsure: number
    /** Occurrences below P1. */
    readonly routineOccurrences: number
  }
  readonly deadLetters: { readonly total: number; readonly lastDay: number }
  readonly lastMinute: { readonly events: number; readonly errors: number }
  readonly last5Minutes: number
  readonly hour: KpiPeriod
  readonly day: KpiPeriod & { readonly criticals: number; readonly p1: number }
  /** Seven calendar minutes, the current one last. */
  readonly sparkline: readonly number[]
  /** The last 24 h of the requested sources that have events. */
  readonly sources: ReadonlyMap<string, SourceDay>
  /** Templates with most events of ERROR and CRITICAL in the last 24 h, in descending order. */
  readonly topErrors: readonly { readonly templateId: string; readonly count: number }[]
}

/** A span and the equal span before it. */
export interface KpiPeriod {
  readonly events: number
  readonly eventsBefore: number
  readonly errors: number
  readonly errorsBefore: number
}

export interface SourceDay {
  readonly occurrences: number
  readonly errors: number
  readonly p1: number
}

/** The snapshot as clients see it; percentages have two decimals. */
export interface KpiSnapshot {
  readonly unique_events: number
  readonly total_occurrences: number
  readonly dedup_rate_pct: number
  readonly success_rate_pct: number
  readonly dlq_count: number
  readonly error_events: number
  readonly events_last_minute: number
  readonly errors_last_minute: number
  readonly events_last_5min: number
  readonly events_per_second: number
  readonly criticals_24h: number
  readonly templates_known: number
  readonly total_applications: number
  readonly active_applications: number
  readonly inactive_applications: number
  readonly critical_applications: number
  readonly open_alerts: number
  readonly global_health_score: number
  readonly top_critical_apps: readonly {
    readonly name: string
    readonly critical_count: number
    readonly health_score: number
  }[]
  readonly recent_alerts: readonly RecentAlert[]
  readonly top_unstable_apps: readonly { readonly name: string; readonly error_rate_pct: number }[]
  readonly top_errors: readonly {
    readonly template_id: string
    readonly count: number
    readonly template_text: string
  }[]
  readonly sparkline: readonly number[]
  readonly trends: {
    readonly events: { readonly '1h': number; readonly '24h': number }
    readonly errors: { readonly '1h': number; readonly '24h': number }
  }
}

export interface RecentAlert {
  readonly id: string
  readonly title: string
  readonly severity: string
  /** ISO 8601. */
  readonly created_at: string
}

/** A snapshot and the time at which its counts were read. */
export interface ComputedKpis extends KpiSnapshot {
  readonly computed_at: string
}
