import { useLayoutEffect, useRef, useState } from 'preact/hooks'

import { call, messageOf } from '../lib/api.js'
import { Icon } from '../lib/icon.js'
import { formTexts } from './form.js'
import { copy } from './notice.js'
import { QrCode } from './qr-code.js'

const PATH = '/api/auth/second-factor'

interface Key {
  readonly secret: string
  /** An `otpauth:` URI, which opens the app on a phone. */
  readonly uri: string
}

export interface Codes {
  readonly recovery_codes: readonly string[]
}

interface TurnOnProps {
  /** Called when the user has seen the recovery codes. */
  readonly onDone: () => void
  readonly onCancel: () => void
  /** The text of the cancel button. */
  readonly cancel: string
}

/** Turns on the user's second factor: password, key for the app, a code of the app, recovery codes. */
export function TurnOnFactor({ onDone, onCancel, cancel }: TurnOnProps) {
  const [key, setKey] = useState<Key | null>(null)
  const [codes, setCodes] = useState<Codes | null>(null)
  const [problem, setProblem] = useState('')
  const form = useRef<HTMLFormElement>(null)
  useLayoutEffect(() => form.current?.querySelector('input')?.focus(), [key])
  const send = async (text: (name: string) => string): Promise<void> => {
    if (key === null) {
      const json = { current_password: text('password') }
      setKey(await call<Key>(PATH, { method: 'POST', json }))
    } else {
      const json = { code: text('code') }
      setCodes(await call<Codes>(`${PATH}/confirm`, { method: 'POST', json }))
    }
    setProblem('')
  }
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    send(formTexts(event.currentTarget)).catch((error: unknown) => setProblem(messageOf(error)))
  }
  if (codes !== null) return <RecoveryCodes codes={codes} onDone={onDone} />
  return (
    <form class="form" ref={form} onSubmit={submit}>
      {key === null ? (
        <label class="field" key="password">
          Your password
          <input name="password" type="password" autocomplete="current-password" required />
        </label>
      ) : (
        <>
          <p>
            Scan this with an authenticator app, <a href={key.uri}>open the app</a> on this device,
            or enter the key.
          </p>
          <QrCode text={key.uri} label="QR code of the key" />
          <p class="made-key">
            <code>{key.secret.replaceAll(/(.{4})(?=.)/g, '$1 ')}</code>
            <button
              type="button"
              class="quiet"
              onClick={() => void copy(key.secret, 'The key is copied.')}
            >
              <Icon name="copy" size={14} /> Copy
            </button>
          </p>
          <label class="field" key="code">
            The code that the app shows
            <input name="code" autocomplete="one-time-code" inputMode="numeric" required />
          </label>
        </>
      )}
      {problem !== '' && (
        <p class="problem" role="alert">
          <Icon name="circle-alert" /> {problem}
        </p>
      )}
      <p class="line">
        <button class="primary">{key === null ? 'Go on' : 'Turn it on'}</button>
        <button type="button" class="quiet" onClick={onCancel}>
          {cancel}
        </button>
      </p>
    </form>
  )
}

interface RecoveryCodesProps {
  readonly codes: Codes
  readonly onDone: () => void
}

export function RecoveryCodes({ codes: { recovery_codes: codes }, onDone }: RecoveryCodesProps) {
  const done = useRef<HTMLButtonElement>(null)
  useLayoutEffect(() => done.current?.focus(), [])
  return (
    <div class="form">
      <p>
        Keep these codes in a safe place. Each logs you in once without the app; they are shown this
        once.
      </p>
      <ul class="codes">
        {codes.map((code) => (
          <li key={code}>
            <code>{code}</code>
          </li>
        ))}
      </ul>
      <p class="line">
        <button type="button" class="primary" ref={done} onClick={onDone}>
          I have kept them
        </button>
        <button
          type="button"
          class="quiet"
          onClick={() => void copy(codes.join('\n'), 'The codes are copied.')}
        >
          <Icon name="copy" size={14} /> Copy
        </button>
      </p>
    </div>
  )
}
