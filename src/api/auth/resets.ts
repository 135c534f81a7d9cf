import type { AccountResets } from '../../backup/control.js'
import type { Audit } from '../../records/audit.js'
import type { Accounts } from './accounts.js'

/** The account resets by the operator of the machine, each recorded in the audit trail. */
export function createResets(
  { users, secondFactors }: Pick<Accounts, 'users' | 'secondFactors'>,
  audit: Audit,
): AccountResets {
  const record = (action: string, target: string): Promise<void> =>
    audit.record({ actorId: '', action, target, outcome: 'ok', ip: '', detail: {} })
  return {
    resetPassword: async (given) => {
      const reset = await users.resetPassword(given)
      await record('resetPassword', reset.email)
      return reset
    },
    resetSecondFactor: async (given) => {
      const email = await secondFactors.reset(given)
      await record('resetSecondFactor', email)
      return email
    },
  }
}
