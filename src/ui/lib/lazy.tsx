import type { FunctionComponent } from 'preact'
import { useEffect, useState } from 'preact/hooks'

/** A component whose script is loaded when it is first rendered. */
export function lazy<P extends object>(
  load: () => Promise<FunctionComponent<P>>,
): FunctionComponent<P> {
  let loaded: FunctionComponent<P> | null = null
  let problem = false
  return (props: P) => {
    const [, redraw] = useState(0)
    useEffect(() => {
      if (loaded !== null) return
      load()
        .then((component) => {
          loaded = component
        })
        // The service was updated since the page was loaded, so its scripts have other names.
        .catch(() => {
          problem = true
        })
        .finally(() => redraw((n) => n + 1))
    }, [])
    if (problem)
      return (
        <div class="found empty" role="alert">
          <p>This part of the page can’t be loaded.</p>
          <button class="primary" onClick={() => location.reload()}>
            Reload
          </button>
        </div>
      )
    const Loaded = loaded
    return Loaded === null ? null : <Loaded {...props} />
  }
}
