/** The texts of a form by their names; '' for what is missing. */
export function formTexts(form: EventTarget | null): (name: string) => string {
  const data = form instanceof HTMLFormElement ? new FormData(form) : new FormData()
  return (name) => {
    const value = data.get(name)
    return typeof value === 'string' ? value.trim() : ''
  }
}
