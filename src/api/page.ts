import { readFileSync, readdirSync } from 'node:fs'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

import type { Reply } from '../http/reply.js'
import type { HttpRequest } from '../http/request.js'
import { httpRoute, type HttpRoute } from '../http/routes.js'
import { SCREEN_PATHS } from '../ui/paths.js'

/** The page loads from and talks to this service only, runs no inline script and is shown in no frame. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}
/** Files can be cached for ever, because their names contain a hash of their content. */
const FOR_EVER = 'public, max-age=31536000, immutable'

const FOLDER = new URL('../../ui/', import.meta.url)

/** The stored codings of each file; the first one that a browser accepts is sent. */
const CODINGS = [
  { name: 'br', ending: '.br' },
  { name: 'gzip', ending: '.gz' },
] as const

/**
 * Serves the web page that `src/ui/build.mjs` builds: the same document at the address of each
 * screen, and its files below `/ui/`.
 *
 * @throws Error when the page is not built
 */
export function createPageRoutes(): HttpRoute[] {
  const names = readdirSync(FOLDER).filter(
    (name) => name !== 'index.html' && Object.hasOwn(TYPES, extname(name)),
  )
  const page = fileReply('index.html', 'no-cache')
  return [
    ...SCREEN_PATHS.map((path) => pageRoute(path, page)),
    ...names.map((name) => pageRoute(`/ui/${name}`, fileReply(name, FOR_EVER))),
  ]
}

const pageRoute = (path: string, handle: (request: HttpRequest) => Reply): HttpRoute =>
  httpRoute({ id: `page:${path}`, method: 'GET', path, bodyBytes: 0, handle })

function fileReply(name: string, cache: string): (request: HttpRequest) => Reply {
  const headers = {
    'Content-Type': TYPES[extname(name)] ?? '',
    'Content-Security-Policy': POLICY,
    'Cache-Control': cache,
    Vary: 'Accept-Encoding',
  }
  const read = (file: string): Buffer => readFileSync(fileURLToPath(new URL(file, FOLDER)))
  const plain: Reply = { status: 200, headers, body: read(name) }
  const coded = CODINGS.map((coding) => ({
    name: coding.name,
    reply: {
      status: 200,
      headers: { ...headers, 'Content-Encoding': coding.name },
      body: read(name + coding.ending),
    },
  }))
  return ({ headers: asked }) => {
    const accepted = (asked.first('accept-encoding') ?? '').split(',').map((part) => part.trim())
    return coded.find((one) => accepted.includes(one.name))?.reply ?? plain
  }
}
