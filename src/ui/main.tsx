import { render } from 'preact'

import { App } from './app.js'
import { findSession } from './lib/session.js'

const root = document.getElementById('page')
// The document shows the empty shell until the session is known.
await findSession()
// Preact would keep the children of the root, and the login form has no shell.
root?.replaceChildren()
if (root !== null) render(<App />, root)
