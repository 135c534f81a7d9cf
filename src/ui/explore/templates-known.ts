import { signal } from '@preact/signals'

import { call, pathWith } from '../lib/api.js'

interface Known {
  readonly template_id: string
  readonly template_text: string
}

/** The texts of templates that were shown: what is constant in a message, and what varies. */
const texts = signal<ReadonlyMap<string, string>>(new Map())
/** Until when a text is not asked for again. */
const freshUntilMs = new Map<string, number>()
const wanted = new Set<string>()
let isAsking = false

/** A text may become more general with new messages. */
const KEPT_MS = 60_000
/** What had no answer, or is not stored yet, is asked for again. */
const AGAIN_MS = 5000
const NO_TEMPLATE = /^0*$/
const MOST_KEPT = 2000
const MOST_ASKED = 100

/** @param shown ids of templates on the screen; what is not known of them is asked for */
export function learnTemplates(shown: Iterable<string>): void {
  const nowMs = Date.now()
  for (const id of shown)
    if (!NO_TEMPLATE.test(id) && nowMs > (freshUntilMs.get(id) ?? 0)) wanted.add(id)
  if (!isAsking) void ask()
}

async function ask(): Promise<void> {
  isAsking = true
  while (wanted.size > 0) {
    const ids = [...wanted].slice(0, MOST_ASKED)
    for (const id of ids) wanted.delete(id)
    const params = { template_id: ids.join(), limit: MOST_ASKED }
    const path = pathWith('/api/logs/meta/templates', params)
    const found = await call<readonly Known[]>(path).catch(() => [])
    const all = new Map(texts.value)
    for (const one of found) all.set(one.template_id, one.template_text)
    if (freshUntilMs.size > MOST_KEPT) freshUntilMs.clear()
    for (const id of ids) freshUntilMs.set(id, Date.now() + (all.has(id) ? KEPT_MS : AGAIN_MS))
    // What shows them is drawn again, and asks for what is still missing.
    if (ids.some((id) => !all.has(id))) setTimeout(redraw, AGAIN_MS + 100)
    texts.value = new Map([...all].slice(-MOST_KEPT))
  }
  isAsking = false
}

function redraw(): void {
  texts.value = new Map(texts.value)
}

/** @returns '' for a template that is not known */
export const templateText = (id: string): string => texts.value.get(id) ?? ''
