import * as fc from 'fast-check'
import t from 'tap'
import { TemplateMiner } from '../../../src/templates/miner.js'
import type { MinedTemplate } from '../../../src/templates/registry.js'
import { MessageBytes } from '../../../src/templates/scan.js'
import { matches, templateValues } from '../../../src/templates/template-text.js'

const encoder = new TextEncoder()

/** Mines all messages. @returns the final template text of each */
function mine(messages: readonly string[], miner = new TemplateMiner(), source = 'app'): string[] {
  const numbers = messages.map((message) => miner.resolve(source, encoder.encode(message)))
  return numbers.map((no) => miner.textOf(miner.rootOf(no)))
}

const one = (message: string): string => mine([message])[0] ?? ''

/** Messages of a few kinds, mixed with words and odd punctuation. */
const piece = fc.oneof(
  fc.constantFrom(...'alpha beta gamma user from for GET HTTP/1.1 Jan root true KB ms'.split(' ')),
  fc.constantFrom(
    ...'/a/b core.12 node-7 a=b x1 :: -- <*> [y] "q" 10.0.0.1:80 C:\\x 日本1本'.split(' '),
  ),
  fc.constantFrom(
    '12:00:00',
    '2025-06-03',
    'http://a/b?c=d',
    '\t',
    '\n',
    'fe80::1',
    '5',
    '\0',
    'é',
  ),
  fc.string({ maxLength: 6 }),
)
const message = fc.array(piece, { minLength: 1, maxLength: 10 }).map((pieces) => pieces.join(' '))

t.test("a template's text is the message with values masked", async (t) => {
  const reads = (message: string, text: string) => t.equal(one(message), text, message)
  reads('Took 19.05 seconds to spawn', 'Took <*> seconds to spawn')
  reads('[instance: b9000564-fe1a-409b-b8cc-1e88b294cd1d] VM Started', '[instance: <*>] VM Started')
  reads('10.0.0.1 "GET /v2/servers/detail HTTP/1.1" 200', '<*> "GET <*>" <*>')
  reads('"GET / HTTP/1.1" 200', '"GET <*>" <*>')
  reads('at Fri Jun 17 07:07:00 2005 done', 'at <*> done')
  reads('- [21/Nov/2026:09:28:19 +0000] ok', '- [<*>] ok')
  reads('state <ok>, uid=0 name= tty=ssh', 'state <ok>, uid=<*> name= tty=ssh')
  reads(
    'Failed password for invalid user bob from ::1',
    'Failed password for invalid user <*> from <*>',
  )
  reads('generating core.2275', 'generating core.<*>')
  reads('java.io.IOException: closed', 'java.io.IOException: closed')
  reads('AirPort_Brcm43xx::sync: r24=7', 'AirPort_Brcm43xx::sync: r24=<*>')
  reads('  two   blanks  ', 'two blanks')
  reads('用户123登录成功', '用户<*>登录成功')
  reads('boom\n    at f (/app/x.js:1:2)\n    at g (/app/y.js:3:4)', 'boom<*>')
})

t.test('one word that differs becomes a value only on evidence', async (t) => {
  const opened = (name: string) => `connection of service ${name} to the pool was opened again`
  const two = mine(['red', 'blue'].map(opened))
  t.equal(new Set(two).size, 2, 'two words are two templates')
  const many = mine('red blue green black white grey pink gold'.split(' ').map(opened))
  t.same([...new Set(many)], ['connection of service <*> to the pool was opened again'])
})

t.test('states, verbs and first words need more evidence', async (t) => {
  const states = mine(
    ['LOOKING', 'LEADING', 'FOLLOWING'].map((s) => `my vote for the round is ${s} now`),
  )
  t.equal(new Set(states).size, 3)
  const programs = mine(
    'sshd cron klogd syslogd cupsd portmap'.split(' ').map((p) => `${p} startup succeeded`),
  )
  t.equal(new Set(programs).size, 6)
})

t.test('a word in the place where a number was seen is a value', async (t) => {
  const texts = mine(['no route to host 17 found today', 'no route to host alpha found today'])
  t.same([...new Set(texts)], ['no route to host <*> found today'])
})

t.test('a word with one digit is text until another digit is seen', async (t) => {
  t.equal(one('protocol ssh2 chosen'), 'protocol ssh2 chosen')
  t.same(mine(['link eth0 is up', 'link eth1 is up']), ['link <*> is up', 'link <*> is up'])
})

t.test('amounts that change their unit are one value with it', async (t) => {
  const texts = mine(['size 5.2 KB, free 7 KB of memory', 'size 3.1 MB, free 9 KB of memory'])
  t.same([...new Set(texts)], ['size <*>, free <*> of memory'])
  t.equal(one('size 5.2 KB'), 'size <*> KB')
})

t.test(
  'every message matches the text of its template, and has a value for each variable',
  async (t) => {
    t.doesNotThrow(() =>
      fc.assert(
        fc.property(fc.array(message, { minLength: 1, maxLength: 60 }), (messages) => {
          const texts = mine(messages)
          return messages.every((message, i) => {
            const text = texts[i] ?? ''
            const values = templateValues(text, message)
            return values?.length === text.split('<*>').length - 1 && matches(text, message)
          })
        }),
        { numRuns: 300 },
      ),
    )
  },
)

t.test('messages with one signature have one template', async (t) => {
  const scanned = new MessageBytes()
  const signatureOf = (text: string) => {
    const out = new Int32Array(2)
    const bytes = encoder.encode(text)
    scanned.load(bytes)
    scanned.signature(0, bytes.length, 1, 2, out)
    return `${out[0]}/${out[1]}`
  }
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(fc.array(message, { minLength: 2, maxLength: 40 }), (messages) => {
        const varied = messages.map((text) => text.replaceAll(/\d/g, '7'))
        const all = [...messages, ...varied]
        const texts = mine(all)
        const textOfSignature = new Map<string, string>()
        return all.every((text, i) => {
          const signature = signatureOf(text)
          const known = textOfSignature.get(signature) ?? texts[i] ?? ''
          textOfSignature.set(signature, known)
          return known === texts[i]
        })
      }),
      { numRuns: 200 },
    ),
  )
})

const colours = 'red blue green black white grey pink gold'.split(' ')
const log = (): string[] => [
  ...colours.map((name) => `session of user ${name} was opened on host h${name.length}x`),
  ...colours.map((_, i) => `request ${i} took ${i * 7} ms`),
  ...colours.map((name) => `unrelated ${name}`),
]

t.test('the order of messages does not change their groups', async (t) => {
  const groups = (messages: readonly string[]) => {
    const texts = mine(messages)
    return new Map(messages.map((message, i) => [message, texts[i]]))
  }
  const forward = groups(log())
  const backward = groups(log().toReversed())
  for (const [message, text] of forward) t.equal(backward.get(message), text, message)
})

t.test('ids survive a restart, redirects included', async (t) => {
  const before = new TemplateMiner()
  const numbers = log().map((message) => before.resolve('app', encoder.encode(message)))
  const changes: MinedTemplate[] = before.takeChanges()
  t.ok(
    changes.some(({ redirectId }) => redirectId !== ''),
    'some templates were merged',
  )
  t.same(structuredClone(changes), changes)
  t.same(before.takeChanges(), [], 'changes are reported once')

  const after = new TemplateMiner()
  after.restore(changes)
  t.same(after.takeChanges(), [])
  for (const [i, message] of log().entries()) {
    const again = after.resolve('app', encoder.encode(message))
    t.equal(after.idOf(again), before.idOf(before.rootOf(numbers[i] ?? 0)), message)
  }
  for (const { id, redirectId } of changes) {
    const root = after.idOf(after.rootOf(after.numberOf(id)))
    t.equal(root, redirectId === '' ? id : redirectId)
  }
})

t.test('two instances with the same first message give its template the same id', async (t) => {
  const [a, b] = [new TemplateMiner(), new TemplateMiner()]
  b.resolve('other', encoder.encode('something else'))
  const idOf = (miner: TemplateMiner) =>
    miner.idOf(miner.resolve('app', encoder.encode('took 5 ms')))
  t.equal(idOf(a), idOf(b))
  t.match(idOf(a), /^[0-9a-f]{16}$/)
  t.not(a.idOf(a.resolve('other', encoder.encode('took 5 ms'))), idOf(a), 'sources are apart')
})

t.test('a ready-made template is used as it is', async (t) => {
  const miner = new TemplateMiner()
  const no = miner.resolveReadyMade('app', 'User {name} paid {amount} %s')
  t.equal(miner.textOf(no), 'User <*> paid <*> <*>')
  t.equal(miner.resolveReadyMade('app', 'User {name} paid {amount} %s'), no)
  t.ok(matches(miner.textOf(no), 'User bob paid 5 EUR'))
})

const letters = (n: number) =>
  n.toString().replaceAll(/\d/g, (digit) => String.fromCharCode(97 + Number(digit)))
/** Messages of which no two are of one template. */
const distinct = (i: number) =>
  encoder.encode(`${letters(i * 7919)} ${letters(i * 104_729)} ${letters(i * 31)}`)

t.test('beyond its share a source gets its catch-all template', async (t) => {
  const limits = { templates: 100, share: 0.25, evidencePerSource: 200 }
  const miner = new TemplateMiner(limits)
  for (let i = 0; i < 2000; i++) {
    miner.resolve('a', distinct(i))
    miner.resolveReadyMade('a', `made ${letters(i)}`)
  }
  t.equal(miner.size, 20 + 1)
  t.equal(miner.textOf(miner.resolve('a', encoder.encode('never seen before'))), '<*>')
  for (let i = 0; i < 2000; i++) miner.resolve(`source-${i}`, encoder.encode('hello'))
  t.equal(miner.textOf(miner.resolve('source-1', encoder.encode('hello'))), 'hello')
  t.equal(miner.textOf(miner.resolve('source-1999', encoder.encode('hello'))), '<*>')
  t.equal(miner.size, limits.templates + 2)
  t.equal(miner.takeChanges().filter(({ text }) => text === '<*>').length, 2)
})

t.test('however many sources are greedy, a new one has templates of its own', async (t) => {
  const hasOwn = (greedy: number, owner: (source: string) => string) => {
    const miner = new TemplateMiner({ templates: 10_000 })
    const names = Array.from({ length: greedy }, (_, i) => `greedy-${i}`)
    miner.setOwners(new Map([...names, 'same-key', 'other-key'].map((n) => [n, owner(n)])))
    for (const name of names) for (let i = 0; i < 400; i++) miner.resolve(name, distinct(i))
    const texts = (source: string) =>
      Array.from({ length: 100 }, (_, i) => miner.textOf(miner.resolve(source, distinct(i))))
    const own = (source: string) => texts(source).filter((text) => text !== '<*>').length
    return [own('other-key'), own('same-key')]
  }
  const [other40 = 0, same40 = 0] = hasOwn(40, (name) => (name === 'other-key' ? 'B' : 'A'))
  t.equal(other40, 100, 'the sources of one key leave half to others')
  t.ok(same40 >= 25, `${same40} templates of a source of the same key`)
  const [other400] = hasOwn(400, (name) => (name === 'other-key' ? 'B' : 'A'))
  t.equal(other400, 100)
  const [none = 0] = hasOwn(40, () => '')
  t.ok(none >= 50, `${none} templates where no source has a key`)
})

t.test('a full miner that is restored from its templates gives them their numbers', async (t) => {
  const before = new TemplateMiner({ templates: 50, share: 0.3 })
  const catchAlls = new Map<string, number>()
  for (const source of ['a', 'b', 'c', ''])
    for (let i = 0; i < 200; i++) {
      const no = before.resolve(source, distinct(i))
      if (before.textOf(no) === '<*>') catchAlls.set(source, no)
    }
  for (let i = 0; i < 100; i++) before.resolve(`late-${i}`, distinct(i))
  for (const source of ['c', 'a']) before.resolve(source, distinct(5_000))
  t.equal(catchAlls.size, 4)
  const rows = before.takeChanges().toSorted((a, b) => a.no - b.no)
  const after = new TemplateMiner({ templates: 50, share: 0.3 })
  after.restore(rows)
  for (const { no, id } of rows) t.equal(after.numberOf(id), no)
  for (const [source, no] of catchAlls)
    t.equal(after.resolve(source, encoder.encode('never seen before')), no)
})

t.test('hostile messages are resolved', async (t) => {
  const miner = new TemplateMiner({ templates: 100, share: 1 })
  const hostile = [
    'x'.repeat(1_000_000),
    'a '.repeat(500_000),
    '1 '.repeat(500_000),
    '<*>'.repeat(100_000),
    '='.repeat(100_000),
    'a-1.'.repeat(100_000),
    `${'é'.repeat(4096)}x`,
    '\n'.repeat(10_000),
  ]
  for (const message of hostile) {
    const text = miner.textOf(miner.resolve('h', encoder.encode(message)))
    t.ok(matches(text, message), `${message.slice(0, 10)} is of ${text.slice(0, 40)}`)
  }
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => miner.resolve('b', bytes) > 0),
    ),
  )
})

t.test('a slot opens for all templates of its frame', async (t) => {
  const only = (messages: string[], text: string) => t.same([...new Set(mine(messages))], [text])
  const errors = ['no such file', 'access denied to this', 'disk full: try later']
  only(
    errors.map((error) => `cannot save the snapshot of shard "${error}" at once`),
    'cannot save the snapshot of shard "<*>" at once',
  )
  only(
    errors.map((error) => `Failed to delete the events of a queue. error=${error} stage="late"`),
    'Failed to delete the events of a queue. error=<*> stage="late"',
  )
  only(
    errors.map((error) => `failed to close the log {"path":"/a/b","error":"${error}","n":3}`),
    'failed to close the log {"path":"<*>","error":"<*>","n":<*>}',
  )
  only(
    ['"red"', '"blue","green"'].map((urls) => `ignored the known member of it {"urls":[${urls}]}`),
    'ignored the known member of it {"urls":["<*>"]}',
  )
})

t.test('a value in quotes does not reach beyond them', async (t) => {
  const opened = ['red', 'blue and green'].map((name) => `the user "${name}" may read it`)
  const texts = mine([...opened, 'the user "red" of "blue" may read it'])
  t.not(texts[2], texts[0])
  const pam = mine(['a', 'b', 'c'].map((host) => `login failure of ssh; user_name= rhost=${host}`))
  const other = mine([
    ...['a', 'b', 'c'].map((host) => `login failure of ssh; user_name= rhost=${host}`),
    'login failure of ssh; user_name= rhost=a user=b',
  ])
  t.equal(other[0], pam[0])
  t.not(other[3], other[0], 'a further key is another statement')
})

t.test('quotes tell a value from a word that varies', async (t) => {
  const texts = mine(["failed to stop 'red' (late)", 'failed to stop Unit2Main (late)'])
  t.equal(new Set(texts).size, 2)
})

t.test('a tail opens, and keeps the end that all have', async (t) => {
  const tails = ['timed out.', 'connection reset by peer.', 'EOF.']
  const texts = mine(tails.map((tail) => `Unable to validate the endpoint: ${tail}`))
  t.same([...new Set(texts)], ['Unable to validate the endpoint: <*>.'])
  t.equal(new Set(mine(tails.map((tail) => `the node: ${tail}`))).size, 3, 'no sentence')
})

t.test(
  'what was found to vary makes no further templates, however many words it has',
  async (t) => {
    const sentences: readonly ((reason: string) => string)[] = [
      (reason) => `handshake failed (TLS: ${reason}) while the client was waiting`,
      (reason) => `An error occurred that the router could not handle: ${reason}.`,
      (reason) => `Could not load the map of regions: ${reason}`,
    ]
    const reasons = ['bad record', 'no shared cipher', 'early end', 'unknown name of the host']
    for (const sentence of sentences) {
      const miner = new TemplateMiner()
      const [first] = mine(reasons.map(sentence), miner)
      t.equal(first, sentence('<*>'))
      const { size } = miner
      const fresh = ['one', 'a much longer reason (it had 7 causes) of many words', 'other words']
      t.same([...new Set(mine(fresh.map(sentence), miner))], [first])
      t.equal(miner.size, size, sentence('…'))
    }
  },
)

t.test('the sentence of logfmt and JSON is mined as if it stood alone', async (t) => {
  const names = 'Remove Create Start Stop Commit Prune Attach Detach'.split(' ')
  for (const around of ['level=debug msg="@"', '{"level":"debug","msg":"@","id":5}'] as const) {
    const within = (sentence: string): string => around.replace('@', sentence)
    const short = names.map(within)
    t.equal(new Set(mine([...short, within('<*>')])).size, names.length + 1, 'one word is no value')
    const opened = ['no such file', 'timed out', 'refused'].map((cause) =>
      within(`could not open the file: ${cause}`),
    )
    const expected = within('could not open the file: <*>').replace('"id":5', '"id":<*>')
    t.same([...new Set(mine(opened))], [expected])
  }
  const causes = ['no such file', 'timed out', 'no error at all', 'refused']
  const errors = causes.map(
    (cause, i) => `level=error msg="cannot read it: ${cause}" error="e${i}"`,
  )
  t.same([...new Set(mine(errors))], ['level=error msg="cannot read it: <*>" error="<*>"'])
})

t.test('a message may begin with a value when its other words are many', async (t) => {
  const hosts = 'amber birch cedar dahlia elm fir'.split(' ')
  const told = hosts.map((host) => `${host} lost the connection to its peer`)
  t.equal(new Set(mine(told)).size, 1)
  t.equal(new Set(mine([`node-7 lost the connection to its peer`, ...told.slice(0, 2)])).size, 1)
  t.equal(new Set(mine(hosts.map((host) => `${host} lost connection`))).size, hosts.length)
})

t.test('several words that vary together become values', async (t) => {
  const names = 'red blue green black white'.split(' ')
  const moved = names.map((name, i) => `moved the shard ${name} of index ${names[4 - i]} elsewhere`)
  // The one in the middle has the same name twice.
  t.same([...new Set(mine(moved))], ['moved the shard <*> of index <*> elsewhere'])
  const phrases = ['a timeout', 'no answer at all', 'bad credentials']
  const given = phrases.map((phrase) => `gave up on the peer because of ${phrase} and went on`)
  t.same([...new Set(mine(given))], ['gave up on the peer because of <*> and went on'])
})

t.test('hosts with ports, accounts, and amounts that are told twice are values', async (t) => {
  t.equal(one('closing <0.12.0> in <1 sec'), 'closing <<*>> in <*> sec')
  t.equal(one('dial db-main:5432 now'), 'dial <*> now')
  t.equal(one('worker celery@main is up'), 'worker <*> is up')
  t.equal(one('at line main-loop:x'), 'at line main-loop:x')
  t.equal(one('from fd00::b:bef:1 to 5'), 'from <*> to <*>')
  t.equal(one('{"error":"Get \\"http://a/b\\": EOF"}'), '{"error":"Get \\"<*>\\": EOF"}')
  t.equal(one('close, 1190 bytes (1.16 KB) sent'), 'close, <*> sent')
})
