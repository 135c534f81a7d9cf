/**
 * The screens and dialogs beside Explore, loaded when one of them is first shown: one file, because
 * many small ones load slower.
 */
export { Live } from './live/live.js'
export { Overview } from './overview/overview.js'
export { SourcesScreen } from './sources/sources.js'
export { TemplateScreen } from './templates/template.js'
export { Templates } from './templates/templates.js'
export { RequiredAction } from './shell/required-action.js'
export { KeysHelp } from './shell/keys-help.js'
export { Palette } from './shell/palette.js'
