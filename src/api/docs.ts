import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { httpRoute } from '../http/routes.js'
import type { HttpRoute } from '../http/routes.js'
import type { OpenApiDocument } from './openapi.js'

/** The pages' own files only; no inline script, no other host, not in anybody's frame. */
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

const PAGES = [
  { path: '/docs', file: 'index.html', type: HTML },
  { path: '/docs/', file: 'index.html', type: HTML },
  { path: '/docs/style.css', file: 'style.css', type: STYLE },
  ...['app', 'call', 'dom', 'fields', 'live', 'operation', 'schema'].map((name) => ({
    path: `/docs/${name}.js`,
    file: `${name}.js`,
    type: SCRIPT,
  })),
] as const

/**
 * Serves the OpenAPI document and the interactive docs that are made from it in the browser.
 *
 * @param describe called when somebody first asks
 * @throws Error when a file of the docs is missing
 */
export function createDocsRoutes(describe: () => OpenApiDocument): HttpRoute[] {
  let description: string | null = null
  const asset = (file: string): URL => new URL(import.meta.resolve(`#docs-assets/${file}`))
  const pages = PAGES.map(({ path, file, type }) => {
    const body = readFileSync(fileURLToPath(asset(file)))
    const headers = {
      'Content-Type': type,
      'Content-Security-Policy': POLICY,
      'Cache-Control': 'no-cache',
    }
    const id = `docs:${path}`
    const handle = () => ({ status: 200, headers, body })
    return httpRoute({ id, method: 'GET', path, bodyBytes: 0, handle })
  })
  const json = httpRoute({
    id: 'openapi',
    method: 'GET',
    path: '/openapi.json',
    bodyBytes: 0,
    handle: () => ({
      status: 200,
      headers: { 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-cache' },
      body: (description ??= JSON.stringify(describe())),
    }),
  })
  return [json, ...pages]
}
