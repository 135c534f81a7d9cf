import { test } from 'tap'
import { accessTokenOf, authCookies } from '../../../src/api/auth/credentials.js'

void test('a bearer token wins over the cookie', async (t) => {
  t.strictSame(accessTokenOf({ authorization: 'Bearer a.b.c', cookie: () => 'x.y.z' }), {
    token: 'a.b.c',
    via: 'bearer',
  })
  t.match(accessTokenOf({ authorization: 'bearer   a.b.c ', cookie: () => '' }), { token: 'a.b.c' })
  t.strictSame(accessTokenOf({ authorization: '', cookie: () => 'x.y.z' }), {
    token: 'x.y.z',
    via: 'cookie',
  })
})

void test('a malformed bearer header is refused although there is a cookie', async (t) => {
  for (const authorization of ['Bearer', 'Bearer ', 'Bearer a b', 'Bearer a,b', 'BEARER\ta.b.c'])
    t.throws(() => accessTokenOf({ authorization, cookie: () => 'x.y.z' }), {
      code: 'unauthorized',
    })
})

void test('another scheme leaves it to the cookie', async (t) => {
  t.match(accessTokenOf({ authorization: 'Basic YTpi', cookie: () => 'x.y.z' }), { via: 'cookie' })
  t.throws(() => accessTokenOf({ authorization: 'Basic YTpi', cookie: () => '' }), {
    code: 'unauthorized',
  })
  t.throws(() => accessTokenOf({ authorization: '', cookie: () => '' }), { code: 'unauthorized' })
})

void test('cookies carry the grant for as long as its tokens live, or delete it', async (t) => {
  const settings = {
    secure: true,
    sameSite: 'Lax',
    accessSeconds: 60,
    refreshSeconds: 600,
  } as const
  const flags = { httpOnly: true, secure: true, sameSite: 'Lax' }
  t.strictSame(authCookies({ accessToken: 'a', refreshToken: 'r' }, settings), [
    { name: 'ACCESS_TOKEN', value: 'a', path: '/', maxAgeS: 60, ...flags },
    { name: 'REFRESH_TOKEN', value: 'r', path: '/api/auth', maxAgeS: 600, ...flags },
  ])
  t.strictSame(authCookies(null, settings), [
    { name: 'ACCESS_TOKEN', value: '', path: '/', maxAgeS: 0, ...flags },
    { name: 'REFRESH_TOKEN', value: '', path: '/api/auth', maxAgeS: 0, ...flags },
  ])
})
