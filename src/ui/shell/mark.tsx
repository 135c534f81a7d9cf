/** The logo: lines of a log, one of them highlighted. */
export const Mark = () => (
  <svg class="mark" width="24" height="24" viewBox="0 0 32 32" aria-hidden="true">
    <path d="M6 9h20M6 16h12M6 23h15" />
    <circle cx="24.5" cy="16" r="3" />
  </svg>
)
