interface WhileAnyOptions {
  readonly everyMs: number
  /** Whether there is anything to work on. */
  readonly any: () => boolean
  readonly work: () => void
}

export interface WhileAny {
  /** To be called when something was added. */
  begin(): void
  end(): void
}

/** Repeats some work while there is any. At rest it has no timer, because each wake-up of an idle process costs CPU. */
export function whileAny({ everyMs, any, work }: WhileAnyOptions): WhileAny {
  let timer: NodeJS.Timeout | null = null
  const end = (): void => {
    if (timer !== null) clearInterval(timer)
    timer = null
  }
  const step = (): void => {
    if (any()) work()
    else end()
  }
  return {
    begin: () => {
      timer ??= setInterval(step, everyMs).unref()
    },
    end,
  }
}
