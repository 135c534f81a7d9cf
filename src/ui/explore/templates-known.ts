import { signal } from '@preact/signals'

import { call, pathWith } from '../lib/api.js'

interface Known {
  readonly template_id: string
  readonly template_text: string
}

/** The texts of the templates shown so far, by id. */
const texts = signal<ReadonlyMap<string, string>>(new Map())
/** The time until which a text is not loaded again. */
const freshUntilMs = new Map<string, number>()
const wanted = new Set<string>()
let isAsking = false

/** A text may become more general with new messages. */
const KEPT_MS = 60_000
/** The pause before a missing text is requested again. */
const AGAIN_MS = 5000
const NO_TEMPLATE = /^0*$/
const MOST_KEPT = 2000
const MOST_ASKED = 100

/** @param shown ids of templates on the screen, whose texts are loaded */
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
    // Redraws the views that lack a text, which then request it again.
    if (ids.some((id) => !all.has(id))) setTimeout(redraw, AGAIN_MS + 100)
    texts.value = new Map([...all].slice(-MOST_KEPT))
  }
  isAsking = false
}

function redraw(): void {
  texts.value = new Map(texts.value)
}

/** @returns '' for an unknown template */
export const templateText = (id: string): string => texts.value.get(id) ?? ''
