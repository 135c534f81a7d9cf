/**
 * Whether an Accept header (RFC 9110) prefers a media type to the usual one. Both may be equally
 * welcome, but a wildcard does not ask for the first.
 *
 * @param usual the type of a reply to a request without the header
 */
export function prefers(accept: string, type: string, usual: string): boolean {
  const ranges = new Map(accept.split(',').map(toRange))
  const wanted = ranges.get(type) ?? 0
  const [family] = usual.split('/')
  const otherwise = ranges.get(usual) ?? ranges.get(`${family}/*`) ?? ranges.get('*/*') ?? 0
  return wanted > 0 && wanted >= otherwise
}

/** @returns the range and its quality, 0 to 1; NaN for a faulty one */
function toRange(text: string): readonly [range: string, quality: number] {
  const [range = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase())
  const quality = parameters.find((parameter) => parameter.startsWith('q='))
  return [range, quality === undefined ? 1 : Number(quality.slice(2))]
}
