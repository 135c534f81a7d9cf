import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Reply } from '../http/reply.js'
import { httpRoute } from '../http/routes.js'
import type { HttpRoute } from '../http/routes.js'
import { GUIDES, createGuides } from './guides.js'
import type { OpenApiDocument } from './openapi.js'

/** The pages load only files of this server, run no inline script and are shown in no frame. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self' ws: wss:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const HTML = 'text/html; charset=utf-8'
const SCRIPT = 'text/javascript; charset=utf-8'
const STYLE = 'text/css; charset=utf-8'

/** The pictures of the guides; `npm run screenshots` makes them. */
const IMAGES = new URL('images/', import.meta.resolve('#docs/changes.md'))

const FILES = [
  { path: '/docs', file: 'index.html', type: HTML },
  { path: '/docs/', file: 'index.html', type: HTML },
  ...['style', 'guide'].map((name) => ({
    path: `/docs/${name}.css`,
    file: `${name}.css`,
    type: STYLE,
  })),
  ...['app', 'dom', 'guide', 'live'].map((name) => ({
    path: `/docs/${name}.js`,
    file: `${name}.js`,
    type: SCRIPT,
  })),
] as const

/** Swagger UI draws the reference. It has some 2 MB, so it is read on first use and cached by browsers. */
const REFERENCE = [
  {
    file: 'swagger-ui.css',
    type: STYLE,
    url: import.meta.resolve('swagger-ui-dist/swagger-ui.css'),
  },
  {
    file: 'swagger-ui-bundle.js',
    type: SCRIPT,
    url: import.meta.resolve('swagger-ui-dist/swagger-ui-bundle.js'),
  },
] as const

/**
 * Serves the OpenAPI document, the interactive reference at `/docs`, and the guides at
 * `/docs/NAME`.
 *
 * @param describe is called at the first request for the document
 * @throws Error when a file of the docs is missing
 */
export function createDocsRoutes(describe: () => OpenApiDocument): HttpRoute[] {
  let description: Buffer | null = null
  const guide = createGuides(readAsset('guide.html').toString())
  const files = FILES.map(({ path, file, type }) => {
    const body = readAsset(file)
    return docsRoute(path, type, () => body)
  })
  const images = readdirSync(IMAGES)
    .filter((name) => name.endsWith('.png'))
    .map((name) => {
      const body = readFileSync(new URL(name, IMAGES))
      return docsRoute(`/docs/images/${name}`, 'image/png', () => body)
    })
  const guides = GUIDES.map((name) => {
    let body: Buffer | null = null
    return docsRoute(`/docs/${name}`, HTML, () => (body ??= Buffer.from(guide(name))))
  })
  const reference = REFERENCE.map(({ file, type, url }) => {
    let body: Buffer | null = null
    const cache = 'public, max-age=86400'
    return docsRoute(
      `/docs/${file}`,
      type,
      () => (body ??= readFileSync(fileURLToPath(url))),
      cache,
    )
  })
  const json = httpRoute({
    id: 'openapi',
    method: 'GET',
    path: '/openapi.json',
    bodyBytes: 0,
    handle: () => ({
      status: 200,
      headers: { 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-cache' },
      body: (description ??= Buffer.from(JSON.stringify(describe()))),
    }),
  })
  return [json, ...files, ...images, ...reference, ...guides]
}

const readAsset = (file: string): Buffer =>
  readFileSync(fileURLToPath(new URL(import.meta.resolve(`#docs-assets/${file}`))))

function docsRoute(path: string, type: string, body: () => Buffer, cache = 'no-cache'): HttpRoute {
  const headers = {
    'Content-Type': type,
    'Content-Security-Policy': POLICY,
    'Cache-Control': cache,
  }
  const handle = (): Reply => ({ status: 200, headers, body: body() })
  return httpRoute({ id: `docs:${path}`, method: 'GET', path, bodyBytes: 0, handle })
}
