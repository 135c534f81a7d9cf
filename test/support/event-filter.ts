import type { EventFilter } from '../../src/events/conditions.js'

/** Any event. */
export const NO_FILTER: EventFilter = {
  severities: [],
  priorities: [],
  types: [],
  sources: null,
  environments: [],
  templateIds: [],
  search: '',
}
