import { useEffect, useRef } from 'preact/hooks'

/** Does something again and again while the page is seen; a hidden tab asks nothing. */
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
