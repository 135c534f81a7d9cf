import { useState } from 'preact/hooks'

import { messageOf } from '../lib/api.js'
import { Icon } from '../lib/icon.js'
import { changePassword, logOut } from '../lib/log-in.js'
import { requiredAction } from '../lib/session.js'
import { ShowPassword, typeOf } from './log-in.js'
import { Mark } from './mark.js'
import { Notice } from './notice.js'
import { TurnOnFactor } from './second-factor.js'

/** The form of a step that the user must take before anything else. */
export const RequiredAction = () => (
  <main class="log-in">
    <div class="ways">
      {requiredAction.value === 'password_change_required' ? <NewPassword /> : <Factor />}
    </div>
    <Notice />
  </main>
)

function NewPassword() {
  const [problem, setProblem] = useState('')
  const [isShown, setShown] = useState(false)
  const [typed, setTyped] = useState('')
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    if (!(event.currentTarget instanceof HTMLFormElement)) return
    const form = new FormData(event.currentTarget)
    const text = (name: string): string => {
      const value = form.get(name)
      return typeof value === 'string' ? value : ''
    }
    changePassword(text('current'), text('password')).catch((error: unknown) =>
      setProblem(messageOf(error)),
    )
  }
  return (
    <form onSubmit={submit}>
      <h1>
        <Mark /> A new password
      </h1>
      <p class="note">Yours is temporary. Choose one that only you know.</p>
      <label>
        The temporary one
        <input
          name="current"
          {...typeOf(isShown)}
          autocomplete="current-password"
          required
          autofocus
        />
      </label>
      <label>
        The new one
        <input
          name="password"
          {...typeOf(isShown)}
          autocomplete="new-password"
          required
          onInput={({ currentTarget }) => setTyped(currentTarget.value)}
        />
        <meter aria-label="Strength" min={0} max={STRONG_BITS} value={strengthOf(typed)} />
      </label>
      <ShowPassword isShown={isShown} onChange={setShown} />
      <p class="problem" role="alert">
        {problem !== '' && <Icon name="circle-alert" />} {problem}
      </p>
      <button class="primary">Change it</button>
      <button type="button" class="quiet" onClick={() => void logOut()}>
        Log out
      </button>
    </form>
  )
}

/** The strength of five random words from a list of 7,776. */
const STRONG_BITS = 65

/**
 * A rough strength in bits: characters that repeat one of the two before them, or follow it in
 * order, count little. The service checks for common passwords and decides.
 */
function strengthOf(text: string): number {
  const codes = Array.from(text, (char) => char.codePointAt(0) ?? 0)
  const isPlain = (code: number, i: number): boolean =>
    [codes[i - 1], codes[i - 2]].some((one) => one !== undefined && Math.abs(code - one) <= 1)
  return codes.reduce((bits, code, i) => bits + (isPlain(code, i) ? 0.5 : 4), 0)
}

const Factor = () => (
  <>
    <h1>
      <Mark /> Second factor
    </h1>
    <p class="note">This installation asks for one: codes of an authenticator app.</p>
    <TurnOnFactor
      onDone={() => {
        requiredAction.value = ''
      }}
      onCancel={() => void logOut()}
      cancel="Log out"
    />
  </>
)
