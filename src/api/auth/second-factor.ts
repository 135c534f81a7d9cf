import { createHash } from 'node:crypto'
import { Secret, TOTP } from 'otpauth'
import type { Seal } from '../../coordination/seal.js'
import { AppError } from '../../model/errors.js'
import { MINUTE_MS } from '../../model/time.js'
import type { Entities } from './entities.js'
import type { Passwords } from './passwords.js'
import {
  endSessions,
  normalizeEmail,
  refuseMissing,
  refuseOutside,
  refuseUnlessRules,
  refuseWrongPassword,
  type Actor,
  type User,
} from './user.js'

/**
 * The second factor of a user: the codes of an authenticator app (TOTP, RFC 6238), and recovery codes for when it is lost.
 *
 * none ─begin─▶ pending ─confirm, with a code of the app─▶ on ─disable, or removed by an admin─▶ none
 *
 * A code is good once: the time step of the last one is kept, and only later ones are taken. The key of the app is sealed.
 * Recovery codes have 120 random bits, so that a plain hash of them can't be searched.
 */
export interface SecondFactors {
  /**
   * Creates a key for the app, which replaces one that was not confirmed.
   *
   * @throws AppError invalid_credentials, second_factor_exists
   */
  readonly begin: (id: string, currentPassword: string) => Promise<Enrolment>
  /**
   * @returns recovery codes, to be shown once
   * @throws AppError invalid_code; not_found when `begin` was not called
   */
  readonly confirm: (id: string, code: string) => Promise<string[]>
  /** Replaces the recovery codes. @throws AppError as `disable` */
  readonly renewRecovery: (id: string, proof: Proof) => Promise<string[]>
  /** @throws AppError invalid_credentials, invalid_code, code_reused; not_found when there is none */
  readonly disable: (id: string, proof: Proof) => Promise<void>
  /**
   * Removes the second factor of a user who has lost both app and recovery codes, for an admin.
   * Ends the user's sessions.
   *
   * @throws AppError forbidden, not_found
   */
  readonly remove: (actor: Actor, id: string) => Promise<void>
  /**
   * Removes the second factor for the operator of the machine. Ends the user's sessions.
   *
   * @throws AppError not_found
   */
  readonly reset: (email: string) => Promise<string>
  /** Uses up a code of a user who has a second factor.
   * @throws AppError second_factor_required without a code, invalid_code, code_reused */
  readonly spend: (id: string, code: string | undefined) => Promise<void>
  /** The e-mails of users whose app keys were encrypted with another key, so that none of their codes is accepted. */
  readonly unreadable: () => string[]
}

interface Enrolment {
  /** The key in base32, for typing it into the app. */
  readonly secret: string
  /** The same as a URI, for a QR code. */
  readonly uri: string
}

export interface Proof {
  readonly currentPassword: string
  readonly code: string
}

interface SecondFactorDeps {
  readonly entities: Entities<User>
  readonly passwords: Passwords
  readonly seal: Seal
  /** Counts a code of an app against the user's limit. @throws AppError rate_limited */
  readonly consume: (userId: string) => Promise<void>
  /** Called for each wrong code, and for each that was used before. */
  readonly onWrong: (user: User, code: 'invalid_code' | 'code_reused') => void
  readonly nowMs?: () => number
}

type Factor = NonNullable<User['secondFactor']>

const ISSUER = 'Log Analytics'
/** The length that RFC 4226 recommends. */
const KEY_BYTES = 20
/** The codes of the steps before and after are accepted too, because clocks differ. */
const STEPS_ASIDE = 1
const PENDING_MS = 10 * MINUTE_MS
const RECOVERY_CODES = 10
const RECOVERY_BYTES = 15

export function createSecondFactors(deps: SecondFactorDeps): SecondFactors {
  const { entities } = deps
  const change = changeOf(entities)
  const spend = createSpend(deps)
  const prove = async (id: string, { currentPassword, code }: Proof): Promise<void> => {
    const user = userOf(entities, id)
    if (user.secondFactor === undefined) throw noFactor()
    await refuseWrongPassword(deps.passwords, user, currentPassword)
    await spend(id, code)
  }
  const drop = ({ secondFactor, ...user }: User): User => {
    if (secondFactor === undefined) throw noFactor()
    return user
  }

  return {
    ...createEnrolment(deps),
    renewRecovery: async (id, proof) => {
      await prove(id, proof)
      const codes = newRecoveryCodes()
      await change(id, ({ secondFactor, ...user }) => {
        if (secondFactor === undefined) throw noFactor()
        return { ...user, secondFactor: { ...secondFactor, recovery: codes.map(hashOf) } }
      })
      return codes
    },
    disable: async (id, proof) => {
      await prove(id, proof)
      await change(id, drop)
    },
    remove: async (actor, id) => {
      refuseUnlessRules(actor, userOf(entities, id).role)
      // Somebody who took over a session must not be able to remove the second factor without a code.
      if (actor.userId === id)
        throw new AppError('forbidden', 'your own second factor is disabled with its code')
      await change(id, (user) => endSessions(drop(user), ''))
    },
    reset: async (text) => {
      const email = normalizeEmail(text)
      const { id } = entities.list().find((user) => user.email === email) ?? refuseMissing(text)
      await change(id, (user) => endSessions(drop(user), ''))
      return email
    },
    spend,
    unreadable: () =>
      entities
        .list()
        .filter(
          ({ id, secondFactor }) =>
            secondFactor !== undefined && deps.seal.open(secondFactor.sealed, id) === null,
        )
        .map(({ email }) => email),
  }
}

function createEnrolment(deps: SecondFactorDeps): Pick<SecondFactors, 'begin' | 'confirm'> {
  const { entities, seal, nowMs = Date.now } = deps
  const change = changeOf(entities)
  return {
    begin: async (id, currentPassword) => {
      const user = userOf(entities, id)
      refuseOutside(user, 'second factor')
      await refuseWrongPassword(deps.passwords, user, currentPassword)
      const secret = new Secret({ size: KEY_BYTES }).base32
      const pendingFactor = { sealed: seal.seal(secret, id), expiresAtMs: nowMs() + PENDING_MS }
      await change(id, (current) => {
        if (current.secondFactor !== undefined) throw factorExists()
        return { ...current, pendingFactor }
      })
      return { secret, uri: totpOf(secret, user.email).toString() }
    },
    confirm: async (id, code) => {
      const codes = newRecoveryCodes()
      const recovery = codes.map(hashOf)
      await deps.consume(id)
      await change(id, ({ pendingFactor, ...user }) => {
        const { sealed, expiresAtMs } = pendingFactor ?? { sealed: '', expiresAtMs: 0 }
        const secret = seal.open(sealed, id)
        if (expiresAtMs <= nowMs() || secret === null) throw nothingBegun()
        const lastStep = stepOf(secret, digitsOf(code), nowMs())
        if (lastStep === null) throw invalidCode()
        return { ...user, secondFactor: { sealed, lastStep, recovery, sinceMs: nowMs() } }
      })
      return codes
    },
  }
}

const userOf = (entities: Entities<User>, id: string): User => entities.get(id) ?? refuseMissing(id)

const changeOf =
  (entities: Entities<User>) =>
  async (id: string, how: (user: User) => User): Promise<void> => {
    await entities.update(id, (user) => (user === null ? refuseMissing(id) : how(user)))
  }

/** Checks and uses up a code. Of concurrent uses of the same code one succeeds, because changes of a record are serialised. */
const createSpend =
  (deps: SecondFactorDeps): SecondFactors['spend'] =>
  async (id, code) => {
    const { entities, seal, consume, onWrong, nowMs = Date.now } = deps
    if (entities.get(id)?.secondFactor === undefined) return
    if (code === undefined) throw codeRequired()
    const digits = digitsOf(code)
    const keyOf = ({ sealed }: Factor): string => {
      const secret = seal.open(sealed, id)
      if (secret === null) throw unreadableKey()
      return secret
    }
    // Recovery codes cannot be guessed, so they are not limited and work while somebody guesses the app's codes.
    if (digits !== '') await consume(id)
    await entities.update(id, (user) => {
      const factor = user?.secondFactor
      if (user === null || factor === undefined) return user
      const spent =
        digits === ''
          ? afterRecovery(factor, code)
          : afterStep(factor, stepOf(keyOf(factor), digits, nowMs()))
      if (typeof spent !== 'string') return { ...user, secondFactor: spent }
      onWrong(user, spent)
      throw spent === 'code_reused' ? codeReused() : invalidCode()
    })
  }

function afterStep(factor: Factor, step: number | null): Factor | 'invalid_code' | 'code_reused' {
  if (step === null) return 'invalid_code'
  return step > factor.lastStep ? { ...factor, lastStep: step } : 'code_reused'
}

function afterRecovery(factor: Factor, code: string): Factor | 'invalid_code' {
  const hash = hashOf(code)
  const recovery = factor.recovery.filter((other) => other !== hash)
  return recovery.length < factor.recovery.length ? { ...factor, recovery } : 'invalid_code'
}

const totpOf = (secret: string, label = ''): TOTP => new TOTP({ issuer: ISSUER, label, secret })

/** @returns the time step that a code belongs to; null for a wrong one */
function stepOf(secret: string, digits: string, timestamp: number): number | null {
  const totp = totpOf(secret)
  const delta = totp.validate({ token: digits, timestamp, window: STEPS_ASIDE })
  return delta === null ? null : totp.counter({ timestamp }) + delta
}

/** @returns the six digits of an app's code without separators; '' for any other text */
function digitsOf(code: string): string {
  const text = code.replaceAll(/[\s-]/g, '')
  return /^\d{6}$/.test(text) ? text : ''
}

const newRecoveryCodes = (): string[] =>
  Array.from({ length: RECOVERY_CODES }, () => {
    const text = new Secret({ size: RECOVERY_BYTES }).base32.toLowerCase()
    return (text.match(/.{6}/g) ?? []).join('-')
  })

const hashOf = (code: string): string =>
  createHash('sha256')
    .update(code.toLowerCase().replaceAll(/[^a-z2-7]/g, ''))
    .digest('base64url')

const codeRequired = (): AppError =>
  new AppError('second_factor_required', 'a code of the second factor is required')
const invalidCode = (): AppError => new AppError('invalid_code', 'the code is wrong')
const unreadableKey = (): AppError =>
  new AppError(
    'invalid_code',
    'codes of the app cannot be checked, because the key of this service was changed: use a recovery code, or ask an admin ' +
      'to remove the second factor',
  )
const codeReused = (): AppError =>
  new AppError('code_reused', 'the code was used already: wait for the next one')
const noFactor = (): AppError => new AppError('not_found', 'there is no second factor')
const nothingBegun = (): AppError =>
  new AppError('not_found', 'no enrolment was begun, or it expired')
const factorExists = (): AppError =>
  new AppError('second_factor_exists', 'there is a second factor already')
