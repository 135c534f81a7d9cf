/**
 * The parts of Explore that are needed when a user opens, types or chooses something: one file,
 * because many small ones load slower.
 */
export { proposalsFor } from './explore/completion.js'
export { copyLink } from './explore/copy-link.js'
export { copyMessage } from './explore/copy-message.js'
export { eventAddress } from './explore/event-address.js'
export { ExportProgress } from './explore/export-progress.js'
export { exportRun } from './explore/export-run.js'
export { DetailPanel } from './explore/detail.js'
export { NothingFound } from './explore/empty.js'
export { ColumnChoices, CopyChoices, ExportChoices } from './explore/summary-menus.js'
export { proposeIncident } from './explore/propose-incident.js'
export { setPriority } from './explore/set-priority.js'
export { TableHead } from './explore/table-head.js'
export { TemplateCounts } from './explore/template-counts.js'
export { UsualBand } from './explore/usual-band.js'
export { startAddress, ViewChoices } from './explore/views.js'
export { VariableMenu } from './explore/variable-menu.js'
export { WhyPanel } from './explore/why.js'
export { RangeChoices } from './shell/range-choices.js'
export { UserChoices } from './shell/user-choices.js'
export { ZoneChoices } from './shell/zone-choices.js'
