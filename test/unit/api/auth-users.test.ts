import { test, type Test } from 'tap'
import { createPasswords } from '../../../src/api/auth/passwords.js'
import { ROLES, isAtLeast, type Role } from '../../../src/model/roles.js'
import type { User } from '../../../src/api/auth/user.js'
import { createUsers } from '../../../src/api/auth/users.js'
import { createInProcessState } from '../../../src/coordination/memory-state.js'
import { memoryEntities } from '../../support/entities.js'

const passwords = createPasswords({ memoryKib: 64, maxWaiting: 1_000 })
const password = 'good password'

async function setUp(t: Test, keptEmail = '') {
  const clock = { ms: 1_700_000_000_000 }
  const { withLock } = createInProcessState({ onError: (error) => t.fail(String(error)) })
  const entities = memoryEntities<User>()
  const nowMs = () => clock.ms++
  const users = createUsers({ entities, passwords, withLock, keptEmail, nowMs })
  const first = await users.ensureFirstAdmin({ email: 'root@localhost', password })
  if (first === null) throw new Error('no first admin')
  const root = { userId: first.user.id, role: first.user.role }
  const add = async (role: Role, email = `${role}-${clock.ms}@example.com`) => {
    const user = await users.create(root, { email, password, role })
    return { ...user, userId: user.id }
  }
  return { users, entities, root, add, clock }
}

void test('the first start makes a superadmin, a later one does not', async (t) => {
  const { users, root } = await setUp(t)
  t.match(users.get(root.userId), {
    email: 'root@localhost',
    role: 'superadmin',
    isActive: true,
    lastLoginAtMs: null,
  })
  t.equal(await users.ensureFirstAdmin({ email: 'other@localhost', password }), null)
  t.equal(users.list().length, 1)
})

void test('without a password one is generated and given back once', async (t) => {
  const { withLock } = createInProcessState({ onError: (error) => t.fail(String(error)) })
  const users = createUsers({ entities: memoryEntities<User>(), passwords, withLock })
  const both = await Promise.all(
    ['a@localhost', 'a@localhost'].map((email) =>
      users.ensureFirstAdmin({ email, password: null }),
    ),
  )
  const made = both.filter((each) => each !== null)
  t.equal(made.length, 1, 'two starts at once make one')
  t.ok(await passwords.verify(made[0]?.user.passwordHash ?? '', made[0]?.generated ?? ''))
})

void test('a new user is an active viewer by default', async (t) => {
  const { users, root } = await setUp(t)
  const user = await users.create(root, { email: ' Ann@Example.COM ', password })
  t.match(user, { email: 'ann@example.com', role: 'viewer', isActive: true })
  t.ok(await passwords.verify(user.passwordHash, password))
})

void test('bad e-mails and passwords are refused', async (t) => {
  const { users, root } = await setUp(t)
  const invalid = { code: 'validation_error', status: 422 }
  for (const email of [
    '',
    '@',
    'a',
    'a@',
    '@b',
    'a b@c',
    'a@b@c',
    'a@\u0000',
    `${'x'.repeat(250)}@b.c`,
  ])
    await t.rejects(users.create(root, { email, password }), invalid, email)
  for (const bad of ['', 'short', 'x'.repeat(1_025)])
    await t.rejects(users.create(root, { email: 'a@b.c', password: bad }), invalid)
})

void test('of concurrent users with one e-mail exactly one is created', async (t) => {
  const { users, root, add } = await setUp(t)
  const emails = ['ann@example.com', 'ANN@example.com', ' ann@example.com']
  const other = await add('viewer')
  const all = await Promise.allSettled([
    ...emails.map((email) => users.create(root, { email, password })),
    users.patch(root, other.id, { email: 'Ann@example.com' }),
  ])
  t.equal(all.filter((r) => r.status === 'fulfilled').length, 1)
  for (const r of all) if (r.status === 'rejected') t.match(r.reason, { code: 'email_conflict' })
})

void test('a user keeps its own e-mail, and an e-mail that was given up is free', async (t) => {
  const { users, root, add } = await setUp(t)
  const ann = await add('viewer', 'ann@example.com')
  t.equal((await users.patch(root, ann.id, { email: 'ANN@example.com' })).email, 'ann@example.com')
  await users.patch(root, ann.id, { email: 'ann2@example.com' })
  t.ok(await add('viewer', 'ann@example.com'))
})

void test('which role may change which user', async (t) => {
  const { users, add } = await setUp(t)
  for (const actorRole of ROLES) {
    for (const targetRole of ROLES) {
      const actor = await add(actorRole)
      const may =
        actorRole === 'superadmin' || (actorRole === 'admin' && !isAtLeast(targetRole, 'admin'))
      const check = async (what: string, deed: Promise<unknown>): Promise<void> => {
        const title = `${actorRole} ${may ? 'may' : 'may not'} ${what} ${targetRole}`
        const code = await deed.then(
          () => 'done',
          (error: unknown) => (error instanceof Error && 'code' in error ? error.code : error),
        )
        t.equal(code, may ? 'done' : 'forbidden', title)
      }
      const target = await add(targetRole)
      const email = `new-${actorRole}-${targetRole}@example.com`
      await check('create', users.create(actor, { email, password, role: targetRole }))
      await check('disable', users.patch(actor, target.id, { isActive: false }))
      await check('set the password of', users.setPassword(actor, target.id, { password }))
      await check('delete', users.remove(actor, target.id))
    }
  }
})

void test('roles are given by superadmins alone', async (t) => {
  const { users, root, add } = await setUp(t)
  const [admin, viewer] = [await add('admin'), await add('viewer')]
  await t.rejects(users.setRole(admin, viewer.id, 'manager'), { code: 'forbidden' })
  await t.rejects(users.setRole(viewer, viewer.id, 'superadmin'), { code: 'forbidden' })
  t.equal((await users.setRole(root, viewer.id, 'manager')).role, 'manager')
})

void test('a viewer reads itself, an admin everyone', async (t) => {
  const { users, add } = await setUp(t)
  const [viewer, other, admin] = [await add('viewer'), await add('viewer'), await add('admin')]
  t.equal(users.read(viewer, viewer.id).id, viewer.id)
  t.throws(() => users.read(viewer, other.id), { code: 'forbidden' })
  t.throws(
    () => users.read(viewer, 'nobody'),
    { code: 'forbidden' },
    'nor learns which users exist',
  )
  t.equal(users.read(admin, other.id).id, other.id)
  t.throws(() => users.read(admin, 'nobody'), { code: 'not_found' })
})

void test('a password of one’s own needs the current one', async (t) => {
  const { users, add } = await setUp(t)
  const ann = await add('superadmin')
  const next = 'next password'
  await t.rejects(users.setPassword(ann, ann.id, { password: next }), { code: 'validation_error' })
  const wrong = { password: next, currentPassword: 'wrong password' }
  await t.rejects(users.setPassword(ann, ann.id, wrong), { code: 'invalid_credentials' })
  const right = { password: next, currentPassword: password }
  await t.rejects(users.setPassword(ann, ann.id, { ...right, password: 'short' }), {
    code: 'validation_error',
  })
  const changed = await users.setPassword(ann, ann.id, right)
  t.ok(await passwords.verify(changed.passwordHash, next))
  t.equal(changed.tokenEpoch, 1)
})

void test('of two who change a password at once, one knows the current one', async (t) => {
  const { users, root, add } = await setUp(t)
  const [given, thief, owner] = ['given by an admin', 'password of a thief', 'password of ann']
  const change = (ann: User, next: string) =>
    users.setPassword({ userId: ann.id, role: ann.role }, ann.id, {
      password: next,
      currentPassword: password,
    })
  const ann = await add('viewer')
  const both = await Promise.allSettled([owner, thief].map((next) => change(ann, next)))
  t.strictSame(both.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
  t.match(
    both.find((one) => one.status === 'rejected'),
    {
      reason: { code: 'invalid_credentials' },
    },
  )

  const bob = await add('viewer')
  const late = change(bob, thief).then(
    () => 'done',
    ({ code }) => code,
  )
  // The admin's change waits for one hash, the user's for two.
  await users.setPassword(root, bob.id, { password: given })
  t.equal(await late, 'invalid_credentials')
  t.ok(await passwords.verify(users.get(bob.id)?.passwordHash ?? '', given))
})

void test('other users can neither set a password nor learn which users exist', async (t) => {
  const { users, add } = await setUp(t)
  const viewer = await add('viewer')
  await t.rejects(users.setPassword(viewer, 'nobody', { password }), { code: 'forbidden' })
})

void test('refresh tokens end with a new role, a new password, and being disabled', async (t) => {
  const { users, root, add } = await setUp(t)
  const { id } = await add('viewer')
  const epoch = () => users.get(id)?.tokenEpoch
  await users.patch(root, id, { email: 'changed@example.com' })
  await users.patch(root, id, { isActive: true })
  await users.setRole(root, id, 'viewer')
  t.equal(epoch(), 0, 'unchanged by what changes nothing')
  await users.setRole(root, id, 'manager')
  t.equal(epoch(), 1)
  await users.setPassword(root, id, { password })
  t.equal(epoch(), 2)
  await users.patch(root, id, { isActive: false })
  t.equal(epoch(), 3)
  await users.patch(root, id, { isActive: false })
  t.equal(epoch(), 3)
  await users.patch(root, id, { isActive: true })
  t.equal(epoch(), 3)
})

void test('the last active superadmin stays one', async (t) => {
  const { users, root, add } = await setUp(t)
  const last = { code: 'last_superadmin', status: 409 }
  const { userId } = root
  await t.rejects(users.setRole(root, userId, 'viewer'), last)
  await t.rejects(users.patch(root, userId, { isActive: false }), last)
  await t.rejects(users.remove(root, userId), last)
  const second = await add('superadmin')
  await users.patch(root, second.id, { isActive: false })
  await t.rejects(users.remove(root, userId), last, 'an inactive one does not count')
  await users.patch(root, second.id, { isActive: true })
  await users.setRole(root, userId, 'viewer')
  await t.rejects(users.remove(second, second.id), last)
})

void test('the account of PASSWORD_LOGIN_ONLY stays a superadmin, whoever else is one', async (t) => {
  const { users, root, add } = await setUp(t, 'root@localhost')
  const { userId } = root
  const second = await add('superadmin')
  const last = { code: 'last_superadmin', status: 409 }
  await t.rejects(users.setRole(second, userId, 'viewer'), last)
  await t.rejects(users.patch(second, userId, { isActive: false }), last)
  await t.rejects(users.remove(second, userId), last)
  const renamed = users.patch(second, userId, { email: 'moved@localhost' })
  await t.rejects(renamed, { code: 'forbidden', status: 403 })
  t.match(users.get(userId), { email: 'root@localhost', role: 'superadmin', isActive: true })
  await users.remove(root, second.id)
})

void test('of superadmins that are all deleted at once one remains', async (t) => {
  const { users, root, add } = await setUp(t)
  const all = [root.userId]
  for (let i = 0; i < 5; i++) all.push((await add('superadmin')).id)
  const left = await Promise.allSettled(
    all.map((id, i) => {
      if (i % 3 === 0) return users.remove(root, id)
      if (i % 3 === 1) return users.setRole(root, id, 'admin')
      return users.patch(root, id, { isActive: false })
    }),
  )
  t.equal(left.filter((r) => r.status === 'rejected').length, 1)
  const active = users.list().filter((u) => u.role === 'superadmin' && u.isActive)
  t.equal(active.length, 1)
})
