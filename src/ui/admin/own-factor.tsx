import { useState } from 'preact/hooks'

import { call } from '../lib/api.js'
import { counted } from '../lib/format.js'
import { useLoad } from '../lib/load.js'
import { Dialog } from '../shell/dialog.js'
import { FormDialog } from '../shell/form-dialog.js'
import { notice } from '../shell/notice.js'
import { Problem } from '../shell/problem.js'
import { RecoveryCodes, TurnOnFactor, type Codes } from '../shell/second-factor.js'
import { When } from '../shell/when.js'

const PATH = '/api/auth/second-factor'

interface Factor {
  readonly enabled: boolean
  readonly since: string | null
  readonly recovery_codes_left: number
  /** Null for a user who logs in with a password. */
  readonly provider: string | null
}

type Step = 'none' | 'on' | 'off' | 'renew'

/** The second factor of the user, with the ways to turn it on and off. */
export function OwnFactor({ onChanged }: { readonly onChanged: () => void }) {
  const loaded = useLoad('own factor', (signal) => call<Factor>(PATH, { signal }))
  const [step, setStep] = useState<Step>('none')
  const [codes, setCodes] = useState<Codes | null>(null)
  const { value: factor } = loaded
  const close = (): void => {
    setStep('none')
    setCodes(null)
    loaded.reload()
    // Turning the second factor on ends other sessions.
    onChanged()
  }
  const prove = async (text: (name: string) => string): Promise<void> => {
    const json = { current_password: text('password'), code: text('code') }
    if (step === 'renew') {
      setCodes(await call<Codes>(`${PATH}/recovery-codes`, { method: 'POST', json }))
      return
    }
    await call(`${PATH}/disable`, { method: 'POST', json })
    notice('You log in with the password alone.')
    close()
  }
  return (
    <section class="card own-factor">
      <h2>Second factor</h2>
      <Problem of={loaded} />
      {factor !== null && <FactorState factor={factor} onStep={setStep} />}
      {step === 'on' && (
        <Dialog title="Turn on the second factor" onClose={close}>
          <TurnOnFactor onDone={close} onCancel={close} cancel="Cancel" />
        </Dialog>
      )}
      {codes !== null && (
        <Dialog title="New recovery codes" onClose={close}>
          <RecoveryCodes codes={codes} onDone={close} />
        </Dialog>
      )}
      {(step === 'off' || step === 'renew') && codes === null && (
        <FormDialog
          title={step === 'off' ? 'Turn off the second factor' : 'New recovery codes'}
          action={step === 'off' ? 'Turn it off' : 'Make them'}
          onClose={close}
          onSubmit={prove}
        >
          <label class="field">
            Your password
            <input
              name="password"
              type="password"
              autocomplete="current-password"
              required
              autofocus
            />
          </label>
          <label class="field">
            A code of the app, or a recovery code
            <input name="code" autocomplete="one-time-code" required />
          </label>
        </FormDialog>
      )}
    </section>
  )
}

interface FactorStateProps {
  readonly factor: Factor
  readonly onStep: (step: Step) => void
}

function FactorState({ factor, onStep }: FactorStateProps) {
  if (factor.provider !== null)
    return <p>The provider at which you log in, {factor.provider}, has it.</p>
  return factor.enabled ? (
    <p class="line">
      <span>
        On since <When at={factor.since} />, {counted(factor.recovery_codes_left, 'recovery code')}{' '}
        left.
      </span>
      <button onClick={() => onStep('renew')}>New codes …</button>
      <button class="quiet" onClick={() => onStep('off')}>
        Turn it off …
      </button>
    </p>
  ) : (
    <p class="line">
      <span>You log in with the password alone.</span>
      <button onClick={() => onStep('on')}>Turn it on …</button>
    </p>
  )
}
