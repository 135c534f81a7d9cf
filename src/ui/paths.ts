/** The addresses of the page's screens. The service answers each of them with the page. */
export const SCREEN_PATHS = [
  '/',
  '/explore',
  '/events/{id}',
  '/live',
  '/templates',
  '/templates/{id}',
  '/overview',
  '/sources',
  '/sources/send',
  '/sources/dead-letters',
  '/sources/keys',
] as const
