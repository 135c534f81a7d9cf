import { useEffect, useRef } from 'preact/hooks'

/** Runs something periodically while the page is visible; a hidden tab makes no requests. */
export function useEvery(ms: number, run: () => void): void {
  const newest = useRef(run)
  newest.current = run
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) newest.current()
    }, ms)
    return () => clearInterval(timer)
  }, [ms])
}
