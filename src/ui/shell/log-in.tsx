import { useEffect, useState } from 'preact/hooks'

import { ApiError, call, messageOf } from '../lib/api.js'
import { Icon } from '../lib/icon.js'
import { leaveForProvider, logIn } from '../lib/log-in.js'
import { requiredAction, loginError } from '../lib/session.js'
import { Mark } from './mark.js'

interface Ways {
  readonly password: boolean
  readonly providers: readonly {
    readonly name: string
    readonly title: string
    readonly login_url: string
  }[]
}

const LOCAL: Ways = { password: true, providers: [] }

/** Why a login at a provider failed, or why the user must log in again, by code. */
const FAULTS: Readonly<Record<string, string>> = {
  log_in: 'Your session has ended. Log in, and you are back where you were.',
  oidc_failed: 'The login at the provider failed or took too long. Try again.',
  role_missing: 'The provider gives you no role here. Ask who runs this service.',
  account_disabled: 'Your account is disabled.',
  email_conflict: 'Another account has your e-mail. Ask who runs this service.',
  dependency_unavailable:
    'The provider, or a part of this service, does not answer. Try again in a moment.',
  rate_limited: 'Too many logins from your address. Try again in a minute.',
}

export function LogIn() {
  const [ways, setWays] = useState<Ways | null>(null)
  useEffect(() => {
    call<Ways>('/api/auth/providers').then(setWays, () => setWays(LOCAL))
  }, [])
  if (ways === null) return null
  const { providers, password } = ways
  const fault = requiredAction.value === '' ? loginError : requiredAction.value
  return (
    <main class="log-in">
      <div class="ways">
        <h1>
          <Mark /> Log analytics
        </h1>
        {fault !== '' && (
          <p class="problem" role="alert">
            <Icon name="circle-alert" /> {FAULTS[fault] ?? 'The login failed. Try again.'}
          </p>
        )}
        {providers.map(({ name, title, login_url: url }) => (
          <a key={name} class="primary way" href={url} onClick={leaveForProvider}>
            {title}
          </a>
        ))}
        {password ? (
          <PasswordForm />
        ) : (
          <details>
            <summary>With a password</summary>
            <PasswordForm />
          </details>
        )}
      </div>
    </main>
  )
}

function PasswordForm() {
  const [problem, setProblem] = useState('')
  const [isBusy, setBusy] = useState(false)
  const [needsCode, setNeedsCode] = useState(false)
  const [isShown, setShown] = useState(false)

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
      if (!isFactor || needsCode) setProblem(messageOf(error))
      setBusy(false)
    }
  }

  return (
    <form onSubmit={(event) => void submit(event)}>
      <label>
        E-mail
        <input name="email" type="text" autocomplete="username" required autofocus />
      </label>
      <label>
        Password
        <input name="password" {...typeOf(isShown)} autocomplete="current-password" required />
      </label>
      <ShowPassword isShown={isShown} onChange={setShown} />
      {needsCode && (
        <label>
          Code of the authenticator app, or a recovery code
          <input name="code" autocomplete="one-time-code" inputMode="numeric" required autofocus />
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
  )
}

/** The type attribute of a password field. */
export const typeOf = (isShown: boolean): { type: 'text' } | { type: 'password' } => ({
  type: isShown ? 'text' : 'password',
})

export const ShowPassword = ({
  isShown,
  onChange,
}: {
  readonly isShown: boolean
  readonly onChange: (isShown: boolean) => void
}) => (
  <label class="show">
    <input type="checkbox" checked={isShown} onChange={() => onChange(!isShown)} />
    Show what I type
  </label>
)
