import { renderLive } from './live.js'

const byId = (id) => document.getElementById(id)

// Kept in memory only. After a reload the HttpOnly cookie authenticates, which scripts cannot read.
let accessToken = ''

const isDark = matchMedia('(prefers-color-scheme: dark)')
const applyTheme = () => document.documentElement.classList.toggle('dark-mode', isDark.matches)
isDark.addEventListener('change', applyTheme)
applyTheme()

// Asks before a request that deletes. The reference sees the click only if it is meant.
document.addEventListener(
  'click',
  (event) => {
    const operation = event.target.closest('#reference .execute')?.closest('.opblock-delete')
    if (!operation) return
    const { path } = operation.querySelector('.opblock-summary-path').dataset
    if (!confirm(`DELETE ${path}\n\nThis can't be undone. Go on?`)) event.stopPropagation()
  },
  { capture: true },
)

/** Operations of the collector's port can't be called from this page, nor can a WebSocket. */
const noTry = () => ({
  statePlugins: {
    spec: {
      wrapSelectors: {
        allowTryItOutFor: (_, system) => (state, path, method) =>
          !system.specSelectors.specJson().getIn(['paths', path, method, 'x-no-try']),
      },
    },
  },
})

const at = (document, path) => path.reduce((value, name) => value?.[name], document)

/** A part of the document with its references replaced, but for one to what it stands in. */
function resolved(document, value, within = []) {
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map((one) => resolved(document, one, within))
  const { $ref } = value
  if (typeof $ref !== 'string')
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [name, resolved(document, one, within)]),
    )
  if (within.includes($ref)) return value
  return resolved(document, at(document, $ref.slice(2).split('/')), [...within, $ref])
}

/**
 * Swagger UI walks through the whole document to resolve one operation, which takes seconds (its issue 10748). All
 * references of this document are to its own components.
 */
const ownReferences = () => ({
  fn: {
    resolveSubtree: (document, path) => ({
      spec: resolved(document, at(document, path)),
      errors: [],
    }),
  },
})

const reference = SwaggerUIBundle({
  url: '/openapi.json',
  domNode: byId('reference'),
  deepLinking: true,
  filter: true,
  // With all operations drawn at once, more than a hundred, Swagger UI stops after the first tag.
  docExpansion: 'none',
  defaultModelsExpandDepth: -1,
  tryItOutEnabled: true,
  displayRequestDuration: true,
  plugins: [noTry, ownReferences],
})

async function send(path, body) {
  const headers = {}
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  if (accessToken !== '') headers.Authorization = `Bearer ${accessToken}`
  const init = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) }
  const reply = await fetch(path, { ...init, credentials: 'same-origin' })
  const text = await reply.text()
  const value = text === '' ? {} : JSON.parse(text)
  if (!reply.ok) {
    const message = value.detail?.message ?? `status ${reply.status}`
    throw Object.assign(new Error(message), { code: value.detail?.code })
  }
  return value
}

function useToken(token) {
  if (token !== '') reference.preauthorizeApiKey('bearer', token)
  else if (accessToken !== '') reference.authActions.logout(['bearer'])
  accessToken = token
}

function showSession(user) {
  byId('log-in').hidden = user !== null
  byId('session').hidden = user === null
  byId('who').textContent = user === null ? '' : `${user.email} (${user.role})`
}

async function attempt(work) {
  const result = byId('log-in-result')
  result.textContent = ''
  try {
    await work()
  } catch (error) {
    result.textContent = error.message
  }
}

/** A user with a second factor logs in a second time, with a code. */
function askForCode(error) {
  if (error.code === 'second_factor_required') byId('code').hidden = false
  throw error
}

byId('log-in').addEventListener('submit', (event) => {
  event.preventDefault()
  const form = event.target
  void attempt(async () => {
    const { email, password, code } = Object.fromEntries(new FormData(form))
    useToken('')
    const login = code === '' ? { email, password } : { email, password, code }
    const { access_token: token } = await send('/api/auth/login', login).catch(askForCode)
    useToken(token)
    form.reset()
    byId('code').hidden = true
    showSession(await send('/api/auth/me'))
  })
})

byId('session').addEventListener('submit', (event) => {
  event.preventDefault()
  void attempt(async () => {
    await fetch('/api/auth/logout', { method: 'POST', credentials: 'same-origin' })
    useToken('')
    showSession(null)
  })
})

// The cookie of an earlier login may still be valid.
send('/api/auth/me').then(showSession, () => showSession(null))
renderLive(byId('live'), '/ws/kpis', () => accessToken)
