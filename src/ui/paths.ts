/** The addresses of the page's screens. The service answers each of them with the page. */
export const SCREEN_PATHS = [
  '/',
  '/explore',
  '/events/{id}',
  '/live',
  '/templates',
  '/templates/{id}',
  '/overview',
  '/incidents',
  '/incidents/{id}',
  '/insights',
  '/sources',
  '/sources/send',
  '/sources/dead-letters',
  '/sources/keys',
  '/admin',
  '/admin/{tab}',
] as const
