import { useEffect } from 'preact/hooks'

import { learnTemplates, templateText } from './templates-known.js'

/** Template ids in titles of alerts, matchers and queries. */
const TEMPLATES = /\b(template[ :=])([0-9a-f]{16})\b/g

/** The text with template ids replaced by the known texts of templates. */
export const named = (text: string): string =>
  text.replaceAll(TEMPLATES, (whole, before: string, id: string) => {
    const template = templateText(id).replaceAll('<*>', '∗')
    return template === '' ? whole : `${before}“${template}”`
  })

/** Shows a text with templates by their texts instead of their ids. */
export function Named({ text }: { readonly text: string }) {
  useEffect(() => learnTemplates([...text.matchAll(TEMPLATES)].map(([, , id = '']) => id)))
  return <>{named(text)}</>
}
