/** A `ref` for an element that replaces the focused one and takes over the focus. */
export const takeFocus = (element: HTMLElement | null): void => element?.focus()
