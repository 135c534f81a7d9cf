import { useState } from 'preact/hooks'

import { ApiError, told } from '../lib/api.js'
import { Icon } from '../lib/icon.js'
import { logIn } from '../lib/session.js'
import { Mark } from './mark.js'

export function LogIn() {
  const [problem, setProblem] = useState('')
  const [isBusy, setBusy] = useState(false)
  const [needsCode, setNeedsCode] = useState(false)

  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault()
    if (!(event.currentTarget instanceof HTMLFormElement)) return
    const form = new FormData(event.currentTarget)
    const text = (name: string): string => {
      const value = form.get(name)
      return typeof value === 'string' ? value : ''
    }
    const code = text('code').trim()
    setBusy(true)
    setProblem('')
    try {
      const known = { email: text('email'), password: text('password') }
      await logIn(code === '' ? known : { ...known, code })
    } catch (error) {
      const isFactor = error instanceof ApiError && error.code === 'second_factor_required'
      if (isFactor) setNeedsCode(true)
      if (!isFactor || needsCode) setProblem(told(error))
      setBusy(false)
    }
  }

  return (
    <main class="log-in">
      <form onSubmit={(event) => void submit(event)}>
        <h1>
          <Mark /> Log analytics
        </h1>
        <label>
          E-mail
          <input name="email" type="text" autocomplete="username" required autofocus />
        </label>
        <label>
          Password
          <input name="password" type="password" autocomplete="current-password" required />
        </label>
        {needsCode && (
          <label>
            Code of the authenticator app, or a recovery code
            <input
              name="code"
              autocomplete="one-time-code"
              inputMode="numeric"
              required
              autofocus
            />
          </label>
        )}
        <p class="problem" role="alert">
          {problem !== '' && <Icon name="circle-alert" />} {problem}
        </p>
        <button class="primary" disabled={isBusy}>
          {isBusy ? 'Logging in …' : 'Log in'}
        </button>
        <p class="note">
          The first start printed an account. A lost password: <code>npm run reset-password</code>
        </p>
      </form>
    </main>
  )
}
