/** What Explore needs once somebody opens, types or chooses: one file, because many small ones load slower. */
export { proposalsFor } from './explore/completion.js'
export { DetailPanel } from './explore/detail.js'
export { NothingFound } from './explore/empty.js'
export { ColumnChoices, CopyChoices, ExportChoices } from './explore/summary-menus.js'
export { startAddress, ViewChoices } from './explore/views.js'
export { WhyPanel } from './explore/why.js'
export { RangeChoices } from './shell/range-choices.js'
