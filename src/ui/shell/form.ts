/** Reads the texts of a form by name; '' for a missing one. */
export function formTexts(form: EventTarget | null): (name: string) => string {
  const data = form instanceof HTMLFormElement ? new FormData(form) : new FormData()
  return (name) => {
    const value = data.get(name)
    return typeof value === 'string' ? value.trim() : ''
  }
}

/** Names with commas or blanks between them. @returns null for none */
export function namesIn(text: string): readonly string[] | null {
  const names = text.split(/[\s,]+/).filter((name) => name !== '')
  return names.length === 0 ? null : names
}
