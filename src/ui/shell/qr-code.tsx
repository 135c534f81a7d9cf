import { encode } from 'uqr'

/** The quiet zone of a QR code in modules (ISO/IEC 18004). */
const BORDER = 4

/** A text as a QR code, dark on white in both themes, because many apps cannot read light ones. */
export function QrCode({ text, label }: { readonly text: string; readonly label: string }) {
  const { size, data } = encode(text, { border: BORDER })
  const squares = data.flatMap((row, y) =>
    row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : '')),
  )
  return (
    <svg class="qr-code" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label}>
      <path d={squares.join('')} />
    </svg>
  )
}
