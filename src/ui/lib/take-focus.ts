/** For `ref`: what comes in place of what had the focus takes it over. */
export const takeFocus = (element: HTMLElement | null): void => element?.focus()
