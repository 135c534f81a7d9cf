import { useEffect } from 'preact/hooks'

import { learnTemplates, templateText } from './templates-known.js'

/** As titles of alerts, matchers and queries have them. */
const TEMPLATES = /\b(template[ :=])([0-9a-f]{16})\b/g

/** The text with what is known of templates in the place of their ids. */
export const named = (text: string): string =>
  text.replaceAll(TEMPLATES, (whole, before: string, id: string) => {
    const template = templateText(id).replaceAll('<*>', '∗')
    return template === '' ? whole : `${before}“${template}”`
  })

/** A text in which templates are shown by their texts instead of their ids. */
export function Named({ text }: { readonly text: string }) {
  useEffect(() => learnTemplates([...text.matchAll(TEMPLATES)].map(([, , id = '']) => id)))
  return <>{named(text)}</>
}
