import { element, pretty } from './dom.js'

const SHOWN_MESSAGES = 100

/**
 * A small WebSocket client: connects with the token of the login (or the cookie), shows what comes.
 *
 * @param token returns the access token, '' without one
 */
export function renderLive(panel, path, token) {
  const connect = element('button', { type: 'button' }, 'Connect')
  const ping = element('button', { type: 'button', disabled: true }, 'Send ping')
  const close = element('button', { type: 'button', disabled: true }, 'Close')
  const state = element('span', { role: 'status' }, 'not connected')
  const log = element('div.log')
  panel.append(
    element('h3', {}, 'Live: ', element('code', {}, path)),
    element('div.row', {}, connect, ping, close, state),
    log,
  )
  let socket = null

  const show = (direction, text) => {
    const time = new Date().toLocaleTimeString()
    const line = element(
      'details',
      {},
      element('summary', {}, `${time} ${direction} ${text.slice(0, 120)}`),
      element('pre', {}, pretty(text, 'json')),
    )
    log.prepend(line)
    while (log.childElementCount > SHOWN_MESSAGES) log.lastElementChild.remove()
  }
  const setOpen = (isOpen) => {
    connect.disabled = isOpen
    ping.disabled = !isOpen
    close.disabled = !isOpen
  }

  connect.addEventListener('click', () => {
    const own = token()
    const scheme = location.protocol === 'https:' ? 'wss:' : 'ws:'
    const url = `${scheme}//${location.host}${path}`
    socket = own === '' ? new WebSocket(url) : new WebSocket(url, [`jwt.${own}`])
    connect.disabled = true
    state.textContent = 'connecting'
    socket.addEventListener('open', () => {
      setOpen(true)
      state.textContent = 'open'
    })
    socket.addEventListener('message', ({ data }) => {
      show('←', String(data))
      if (data === 'ping') send('pong')
    })
    socket.addEventListener('close', ({ code, reason }) => {
      setOpen(false)
      state.textContent = `closed: ${code} ${reason}`
    })
  })
  const send = (text) => {
    socket.send(text)
    show('→', text)
  }
  ping.addEventListener('click', () => send('ping'))
  close.addEventListener('click', () => socket.close(1000))
}
