/*
 * Message templates in Handlebars with `if` and `each` only: no helpers, no partials, nothing that
 * runs code. Values are escaped for the channel; the text of the template is not.
 */

import Handlebars from 'handlebars'

const ALERT_FIELDS = [
  'name',
  'title',
  'status',
  'severity',
  'id',
  'query',
  'since',
  'at',
  'runbook',
] as const
const LINKS = ['events', 'rule', 'incident', 'mute', 'acknowledge'] as const

/** The values that a template may use. */
export interface TemplateValues {
  readonly alert: Readonly<Record<(typeof ALERT_FIELDS)[number], string>>
  readonly value: string
  readonly usual: string
  readonly group: Readonly<Record<string, string>>
  readonly link: string
  readonly links: Readonly<Partial<Record<(typeof LINKS)[number], string>>>
  readonly samples: readonly string[]
}

const handlebars = Handlebars.create()
for (const name of Object.keys(handlebars.helpers))
  if (name !== 'if' && name !== 'each') handlebars.unregisterHelper(name)

const OPTIONS = { noEscape: true, knownHelpersOnly: true, knownHelpers: {}, strict: false }
/** The defaults of Handlebars, set explicitly because it warns on the console otherwise. */
const OWN_ONLY = { allowProtoPropertiesByDefault: false, allowProtoMethodsByDefault: false }
const ROOTS = new Set(['alert', 'value', 'usual', 'group', 'link', 'links', 'samples', 'this'])
/** The fields of the roots that are objects. Those of `group` are the fields that a rule groups by. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  alert: ALERT_FIELDS,
  links: LINKS,
}

/** @returns the fault of a template; null for none */
export function templateFault(text: string): string | null {
  try {
    return programFault(handlebars.parse(text))
  } catch (error) {
    // The parser's message marks the place with an arrow below the line.
    const [line = 'it is not closed'] = error instanceof Error ? error.message.split('\n') : []
    return line.replace(/:$/, '')
  }
}

function programFault({ body }: hbs.AST.Program, isInEach = false): string | null {
  for (const statement of body) {
    const fault = statementFault(statement, isInEach)
    if (fault !== null) return fault
  }
  return null
}

function statementFault(statement: hbs.AST.Statement, isInEach: boolean): string | null {
  if (statement.type === 'ContentStatement' || statement.type === 'CommentStatement') return null
  if (isMustache(statement)) return valueFault(statement)
  return isBlock(statement)
    ? blockFault(statement, isInEach)
    : 'only values, `if` and `each` can be used'
}

function valueFault({ path, params, hash }: hbs.AST.MustacheStatement): string | null {
  if (params.length > 0 || hash !== undefined) return 'a value has no arguments'
  return pathFault(path)
}

/** Rejects nested lists: ten of them could give a billion lines. */
function blockFault(
  { path, params, program, inverse }: hbs.AST.BlockStatement,
  isInEach: boolean,
): string | null {
  const { original } = path
  const [of, ...more] = params
  if (original !== 'if' && original !== 'each')
    return `\`${original}\` is not known; there are \`if\` and \`each\``
  if (of === undefined || more.length > 0) return `\`${original}\` takes one name`
  if (original === 'each' && isInEach) return '`each` cannot be inside of another `each`'
  const isList = isInEach || original === 'each'
  const otherwise = inverse === undefined ? null : programFault(inverse, isList)
  return pathFault(of) ?? programFault(program, isList) ?? otherwise
}

const isMustache = (one: hbs.AST.Statement): one is hbs.AST.MustacheStatement =>
  one.type === 'MustacheStatement'
const isBlock = (one: hbs.AST.Statement): one is hbs.AST.BlockStatement =>
  one.type === 'BlockStatement'

function pathFault(expression: hbs.AST.Expression | hbs.AST.Literal): string | null {
  if (expression.type !== 'PathExpression') return 'only names can be used'
  const { original, parts, data } = expression as hbs.AST.PathExpression // by its type
  if (data) return null
  const [root = 'this', field] = parts
  if (typeof root !== 'string' || !ROOTS.has(root))
    return `\`${original}\` is not known; there are ${[...ROOTS].filter((one) => one !== 'this').join(', ')}`
  const fields = FIELDS[root]
  if (fields === undefined || field === undefined || fields.includes(field)) return null
  return `\`${original}\` is not known; there are ${fields.map((one) => `${root}.${one}`).join(', ')}`
}

/** @param text a template without a fault */
export const renderTemplate = (text: string, values: TemplateValues): string =>
  handlebars.compile(text, OPTIONS)(
    printable(
      { ...values, samples: printable([...values.samples], values.samples.join('\n')) },
      values.alert.title,
    ),
    OWN_ONLY,
  )

/** Gives an object the text that a template prints for it, such as `{{rule}}`. `each` does not list the text. */
export const printable = <T extends object>(value: T, text: string): T =>
  Object.defineProperty(value, 'toString', { value: () => text })
