import { element, prose } from './dom.js'
import { renderLive } from './live.js'
import { anchor, renderOperation } from './operation.js'

const METHODS = ['get', 'post', 'put', 'patch', 'delete']
const byId = (id) => document.getElementById(id)

// Kept in memory only. After a reload the HttpOnly cookie authenticates, which scripts cannot read.
let accessToken = ''

async function start() {
  const reply = await fetch('/openapi.json')
  const description = await reply.json()
  document.title = description.info.title
  byId('title').textContent = `${description.info.title} ${description.info.version}`
  byId('about').replaceWith(element('div', { id: 'about' }, ...prose(description.info.description)))
  const operations = listOperations(description)
  const context = { document: description, token: () => accessToken }
  renderAll(operations, description, context)
  for (const { path, spec } of operations) {
    if (spec['x-websocket']) renderLive(byId('live'), path, context.token)
  }
  byId('filter').addEventListener('input', ({ target }) => applyFilter(target.value))
  openFromHash()
  addEventListener('hashchange', openFromHash)
}

function listOperations({ paths }) {
  return Object.entries(paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => ({ path, method, spec: item[method] })),
  )
}

function renderAll(operations, { tags = [] }, context) {
  const index = byId('index')
  const main = byId('operations')
  for (const { name, description } of tags) {
    const own = operations.filter(({ spec }) => (spec.tags ?? []).includes(name))
    if (own.length === 0) continue
    const links = own.map((operation) =>
      element('a', { href: `#${anchor(operation)}` }, label(operation)),
    )
    index.append(element('div.group', {}, element('h4', {}, name), ...links))
    main.append(
      element(
        'section',
        {},
        element('h2', {}, name),
        ...prose(description),
        ...own.map((operation) => renderOperation(operation, context)),
      ),
    )
  }
}

const label = ({ method, path }) => `${method.toUpperCase()} ${path}`

function applyFilter(text) {
  const wanted = text.trim().toLowerCase()
  const matches = (node) => node.textContent.toLowerCase().includes(wanted)
  for (const node of document.querySelectorAll('details.operation')) {
    node.hidden = !matches(node.querySelector('summary'))
  }
  for (const link of document.querySelectorAll('#index a')) {
    link.hidden = byId(link.hash.slice(1))?.hidden ?? false
  }
}

function openFromHash() {
  const target = byId(decodeURIComponent(location.hash.slice(1)))
  if (!target?.matches('details.operation')) return
  target.open = true
  target.scrollIntoView()
}

async function send(path, body) {
  const headers = {}
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  if (accessToken !== '') headers.Authorization = `Bearer ${accessToken}`
  const init = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) }
  const reply = await fetch(path, { ...init, credentials: 'same-origin' })
  const text = await reply.text()
  const value = text === '' ? {} : JSON.parse(text)
  if (!reply.ok) throw new Error(value.detail?.message ?? `status ${reply.status}`)
  return value
}

function showSession(user) {
  byId('login').hidden = user !== null
  byId('session').hidden = user === null
  byId('who').textContent = user === null ? '' : `${user.email} (${user.role})`
  byId('copy-token').hidden = accessToken === ''
}

async function attempt(work) {
  const result = byId('login-result')
  result.textContent = ''
  try {
    await work()
  } catch (error) {
    result.textContent = error.message
  }
}

byId('login').addEventListener('submit', (event) => {
  event.preventDefault()
  const form = event.target
  void attempt(async () => {
    const { email, password } = Object.fromEntries(new FormData(form))
    accessToken = ''
    const { access_token: token } = await send('/api/auth/login', { email, password })
    accessToken = token
    form.reset()
    showSession(await send('/api/auth/me'))
  })
})

byId('session').addEventListener('submit', (event) => {
  event.preventDefault()
  void attempt(async () => {
    await fetch('/api/auth/logout', { method: 'POST', credentials: 'same-origin' })
    accessToken = ''
    showSession(null)
  })
})

byId('copy-token').addEventListener('click', () => {
  void attempt(() => navigator.clipboard.writeText(accessToken))
})

// The cookie of an earlier login may still be valid.
send('/api/auth/me').then(showSession, () => showSession(null))
start().catch((error) => {
  byId('operations').textContent = `The description cannot be loaded: ${error.message}`
})
