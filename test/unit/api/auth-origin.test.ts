import { test } from 'tap'
import { createOriginCheck } from '../../../src/api/auth/origin.js'
import { HeaderBag } from '../../../src/http/request.js'

const headersOf = (origin: string, host: string): HeaderBag => {
  const headers = new HeaderBag()
  headers.add('origin', origin)
  headers.add('host', host)
  return headers
}

void test('an origin that is no URL is another one, however often the check has run', async (t) => {
  const mayUseCookies = createOriginCheck([])
  // The compiler of Node.js optimises what runs often.
  for (let i = 0; i < 100_000; i++)
    mayUseCookies(headersOf(`https://a${i % 9}.example`, 'b.example'))
  for (const origin of [
    'https://l\u00d6\u0080s.',
    'https://\u00c2\u0080',
    'https://',
    'null',
    '',
    'http:\u00d6\u0080',
  ])
    for (const host of ['l\u00d6\u0080s.', '', 'a.example'])
      t.equal(mayUseCookies(headersOf(origin, host)), false, `${origin} at ${host}`)
  t.equal(mayUseCookies(headersOf('https://a.example', 'A.example')), true)
})
