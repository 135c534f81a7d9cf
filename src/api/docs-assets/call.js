import { element, pretty } from './dom.js'

/** Replies are shown up to here; the rest is in the browser's own tools. */
const SHOWN_CHARACTERS = 200_000

/** Calls the operation with what the fields hold and shows the reply. */
export async function execute({ method, path, fields, button, result, token }) {
  button.disabled = true
  result.replaceChildren('…')
  try {
    const request = toRequest({ method, path, fields, token })
    const startedMs = performance.now()
    const reply = await fetch(request.url, request.init)
    const text = method === 'head' ? '' : await reply.text()
    const tookMs = Math.round(performance.now() - startedMs)
    result.replaceChildren(...renderReply({ request, reply, text, tookMs }))
  } catch (error) {
    result.replaceChildren(element('p.failed', {}, String(error)))
  } finally {
    button.disabled = false
  }
}

function toRequest({ method, path, fields, token }) {
  const target = { path, query: new URLSearchParams(), headers: {}, body: undefined }
  if (token) target.headers.Authorization = `Bearer ${token}`
  for (const field of fields) PLACES[field.place](target, field)
  const text = target.query.toString()
  const url = text === '' ? target.path : `${target.path}?${text}`
  const { headers, body } = target
  return { url, init: { method: method.toUpperCase(), headers, body, credentials: 'same-origin' } }
}

/** How a field's value gets into the request. */
const PLACES = {
  path(target, { name, input }) {
    target.path = target.path.replace(`{${name}}`, () => encodeURIComponent(input.value))
  },
  query({ query }, { name, isList, input }) {
    if (input.value === '') return
    const values = isList ? input.value.split(',').map((item) => item.trim()) : [input.value]
    for (const value of values) query.append(name, value)
  },
  form(target, { name, input }) {
    target.body ??= new FormData()
    const value = input.type === 'file' ? input.files[0] : input.value
    if (value !== undefined && value !== '') target.body.set(name, value)
  },
  body(target, { type, input }) {
    if (input.value.trim() === '') return
    target.body = input.value
    target.headers['Content-Type'] = type
  },
}

function renderReply({ request, reply, text, tookMs }) {
  const type = reply.headers.get('content-type')
  const shown = pretty(text, type)
  const excerpt = shown.length > SHOWN_CHARACTERS ? `${shown.slice(0, SHOWN_CHARACTERS)}\n…` : shown
  const headers = [...reply.headers].map(([name, value]) => `${name}: ${value}`).join('\n')
  return [
    element('pre.curl', {}, toCurl(request)),
    element(
      `p.${reply.ok ? 'done' : 'failed'}`,
      {},
      `${reply.status} ${reply.statusText} in ${tookMs} ms, ${text.length} characters`,
    ),
    element('pre', {}, excerpt === '' ? '(no body)' : excerpt),
    element('details', {}, element('summary', {}, 'Headers'), element('pre', {}, headers)),
  ]
}

function toCurl({ url, init }) {
  const quote = (text) => `'${text.replaceAll("'", String.raw`'\''`)}'`
  const parts = ['curl', '-X', init.method, quote(new URL(url, location.href).href)]
  for (const [name, value] of Object.entries(init.headers)) {
    // The token is not shown.
    parts.push('-H', quote(name === 'Authorization' ? 'Authorization: Bearer $TOKEN' : `${name}: ${value}`))
  }
  if (typeof init.body === 'string') parts.push('--data-raw', quote(init.body))
  if (init.body instanceof FormData) {
    for (const [name, value] of init.body) {
      parts.push('-F', quote(`${name}=${typeof value === 'string' ? value : `@${value.name}`}`))
    }
  }
  return parts.join(' ').replace("'Authorization: Bearer $TOKEN'", '"Authorization: Bearer $TOKEN"')
}
