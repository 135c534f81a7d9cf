import type { Loaded } from '../lib/load.js'
import { oneLine } from '../lib/message.js'
import { may } from '../lib/session.js'
import { toRange } from '../lib/time.js'
import { notice } from '../shell/notice.js'
import { draft } from '../shell/open-dialogs.js'
import { askHistogram, type Histogram, type Run } from './answers.js'
import type { Row } from './rows.js'

/** Opens the form of an incident with an event, and with the query as evidence. */
export async function proposeIncident(
  event: Row,
  run: Run,
  histogram: Loaded<Histogram>,
): Promise<void> {
  if (!may('manager')) {
    notice('Opening an incident needs the role manager.', 'problem')
    return
  }
  const total = await totalOf(run, histogram)
  if (total === null) {
    notice('The search could not be counted. Try again.', 'problem')
    return
  }
  draft.value = {
    title: oneLine(event.message, 200),
    severity: event.priority,
    source: event.source,
    event_ids: [event.id],
    evidence: [{ q: run.line, ...toRange(run.span), count: total }],
  }
}

/** The chart may still be that of the previous query, or missing. */
async function totalOf(run: Run, { value, isLoading }: Loaded<Histogram>) {
  if (!isLoading && value !== null) return value.total
  const { signal } = new AbortController()
  return askHistogram(run, { buckets: 1 }, signal).then(
    ({ total }) => total,
    () => null,
  )
}
