import { oneLine } from '../lib/message.js'
import { may } from '../lib/session.js'
import { toRange } from '../lib/time.js'
import { notice } from '../shell/notice.js'
import { draft } from '../shell/open-dialogs.js'
import type { Run } from './answers.js'
import type { Row } from './rows.js'

/** Opens the form of an incident with an event, and with the search that found it as evidence. */
export function proposeIncident(event: Row, { line, span }: Run, count: number): void {
  if (!may('manager')) {
    notice('Opening an incident needs the role manager.', 'problem')
    return
  }
  draft.value = {
    title: oneLine(event.message, 200),
    severity: event.priority,
    source: event.source,
    event_ids: [event.id],
    evidence: [{ q: line, ...toRange(span), count }],
  }
}
