import { signal } from '@preact/signals'

import { call } from '../lib/api.js'

interface Known {
  readonly template_id: string
  readonly template_text: string
}

/** The texts of the templates with the most occurrences: what is constant in a message, and what varies. */
const texts = signal<ReadonlyMap<string, string>>(new Map())
let askedAtMs = 0
const KEPT_MS = 60_000

/** @param shown templates that are on the screen: when one is new, the texts are asked for again */
export async function learnTemplates(shown: readonly string[] = []): Promise<void> {
  const isKnown = shown.every((id) => texts.value.has(id))
  if (isKnown && Date.now() - askedAtMs < KEPT_MS) return
  askedAtMs = Date.now()
  try {
    const all = await call<readonly Known[]>('/api/logs/meta/templates?limit=200')
    texts.value = new Map(all.map((one) => [one.template_id, one.template_text]))
  } catch {
    // Messages are shown without their variables apart.
    askedAtMs = 0
  }
}

/** @returns '' for a template that is not known */
export const templateText = (id: string): string => texts.value.get(id) ?? ''
