import { render } from 'preact'

import { App } from './app.js'
import { findSession } from './lib/session.js'

const root = document.getElementById('page')
// Until it is known who is logged in, the document shows the empty shell.
await findSession()
// Preact keeps what it finds in the root, and the log-in has no shell.
root?.replaceChildren()
if (root !== null) render(<App />, root)
