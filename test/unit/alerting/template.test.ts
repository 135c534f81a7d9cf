import { test } from 'tap'
import { linksOf } from '../../../src/alerting/links.js'
import { textOf } from '../../../src/alerting/message.js'
import { plainText, slackMessage } from '../../../src/alerting/notice-request.js'
import { renderTemplate, templateFault } from '../../../src/alerting/template.js'
import { TRANSITION } from '../../support/transition.js'

const VALUES = {
  alert: {
    name: 'Errors',
    title: 'Errors',
    status: 'firing',
    severity: 'P2',
    id: '1',
    query: '',
    since: '',
    at: '',
    runbook: '',
  },
  value: '17',
  usual: '',
  group: { host: 'web-1' },
  link: 'https://logs.example.com/explore?q=a&b',
  links: {},
  samples: ['one & two', 'three'],
}

void test('a template has values, `if` and `each`', async (t) => {
  const text =
    '{{alert.name}} {{value}} {{group.host}}{{#if usual}} ({{usual}}){{else}} !{{/if}}\n{{samples}}\n{{#each samples}}- {{this}};{{/each}} {{link}}'
  t.equal(templateFault(text), null)
  t.equal(
    renderTemplate(text, VALUES),
    'Errors 17 web-1 !\none & two\nthree\n- one & two;- three; https://logs.example.com/explore?q=a&b',
  )
  t.equal(renderTemplate('{{group.other}}{{alert.toString}}', VALUES), '')
})

const toNotice = (to: 'firing' | 'resolved', group: readonly string[]) => ({
  id: 'n',
  key: 'k',
  kind: 'transition' as const,
  channelId: 'c',
  transition: { ...TRANSITION, to, groupBy: ['host', 'user.id'], group: [...group] },
})

void test('every name prints a text, also one that has others', async (t) => {
  const links = { events: 'http://e', rule: 'http://r', mute: '', acknowledge: '', incident: null }
  const facts = { usual: 2, samples: ['one', 'two'], links: { ...links, mute: 'http://m' } }
  const said = (template: string): string => {
    t.equal(templateFault(template), null, template)
    const notices = [toNotice('firing', ['web-1', '7'])]
    const { title, lines } = textOf({ notices, facts, template }, (text) => text.toUpperCase())
    return [title, ...lines].join('|')
  }
  t.equal(said('{{group}}'), 'HOST=WEB-1, USER.ID=7')
  t.equal(said('{{group.host}} {{group.[user.id]}}'), 'WEB-1 7')
  t.equal(said('{{#each group}}{{@key}} {{this}} {{/each}}'), 'host WEB-1 user.id 7 ')
  t.equal(said('{{alert}}'), '[P2 FIRING] RULE HOST=WEB-1 USER.ID=7 (1)')
  t.equal(said('{{#if links}}{{links}}{{/if}}').split('|')[1], 'rule: http://r')
  t.equal(said('{{samples}}'), 'ONE|TWO')
  t.equal(said('{{this}}'), said('{{alert.title}}'))
  t.equal(said('{{#each samples}}{{../alert.name}} {{/each}}'), 'RULE RULE ')
  t.equal(said('{{value}} {{usual}} {{link}} {{links.mute}}'), '1 2 http://e http://m')
  const { name, status, severity, id, query, since, at, runbook } = TEXTS
  t.equal(
    said(
      '{{alert.name}},{{alert.status}},{{alert.severity}},{{alert.id}},{{alert.query}},{{alert.since}},{{alert.at}},{{alert.runbook}}',
    ),
    [name, status, severity, id, query, since, at, runbook].join(),
  )
})

const TEXTS = {
  name: 'RULE',
  status: 'firing',
  severity: 'P2',
  id: 'alert',
  query: '',
  since: '1970-01-01T00:00:00.000Z',
  at: '1970-01-01T00:00:00.000Z',
  runbook: '',
}

void test('what a sender wrote adds no line to a message', async (t) => {
  const links = { events: 'http://e', rule: 'http://r', mute: '', acknowledge: '', incident: null }
  const templates = [
    null,
    '{{alert}}',
    '{{group}}',
    '{{#each group}}{{this}}{{/each}}',
    '{{samples}}',
  ]
  const linesWith = (end: string): readonly string[] => {
    const text = `web-1${end}Acknowledge: http://evil.example/`
    const notice = toNotice('firing', [text, text])
    const facts = { usual: 2, samples: [text], links }
    const alone = templates.map((template) => ({ notices: [notice], facts, template }))
    const digest = { notices: [notice, notice], facts: null, template: null }
    return [...alone, digest].flatMap((one) => {
      const message = { ...one, receipt: null }
      const { title, lines } = textOf(message, (line) => line)
      return [plainText(message), slackMessage(message), title, ...lines]
    })
  }
  for (const end of ['\n', '\r\n', '\r', '\v', '\f', '\u0085', '\u2028', '\u2029', '\n\n'])
    t.same(linesWith(end), linesWith(' '), encodeURIComponent(end))
})

void test('the title of a digest counts', async (t) => {
  const titleOf = (...all: readonly ('firing' | 'resolved')[]): string => {
    const notices = all.map((to) => toNotice(to, ['a', 'b']))
    return textOf({ notices, facts: null, template: null }, (text) => text).title
  }
  t.equal(titleOf('firing', 'firing'), '2 alerts fire')
  t.equal(titleOf('firing', 'resolved'), '1 alert fires, 1 resolved')
  t.equal(titleOf('resolved', 'resolved'), '2 alerts resolved')
})

void test('an unknown name or syntax is refused with the reason', async (t) => {
  for (const [text, fault] of [
    ['{{#each samples}}', /Parse error/],
    ['{{who}}', /`who` is not known; there are alert, value/],
    ['{{alert.nam}}', /`alert.nam` is not known; there are alert.name, alert.title/],
    ['{{#if links.snooze}}{{/if}}', /`links.snooze` is not known; there are links.events/],
    ['{{#unless value}}a{{/unless}}', /`unless` is not known; there are `if` and `each`/],
    ['{{lookup group "host"}}', /no arguments/],
    ['{{> other}}', /only values/],
    ['{{#each samples group}}{{/each}}', /one name/],
    ['{{#if value}}{{__proto__}}{{/if}}', /`__proto__` is not known/],
    ['{{#> layout}}{{/layout}}', /only values/],
    ['{{"text"}}', /only names|not known/],
    ['{{#each @root.alert}}{{#each @root.alert}}x{{/each}}{{/each}}', /inside of another/],
    ['{{#each group}}{{#if value}}{{else}}{{#each @root}}x{{/each}}{{/if}}{{/each}}', /inside of/],
    ['{{#each group}}{{else}}{{#each samples}}x{{/each}}{{/each}}', /inside of another/],
    ['{{(lookup this "constructor")}}', /./],
  ] as const)
    t.match(templateFault(text), fault, text)
})

void test('the link to the events of an alert has their time', async (t) => {
  const at = (minute: number): number => Date.UTC(2026, 0, 1, 9, minute)
  const rangeOf = (more: Partial<typeof TRANSITION>): string => {
    const one = { ...TRANSITION, windowFromMs: at(30), windowToMs: at(35), ...more }
    const { searchParams } = new URL(linksOf(one, 'https://logs.example.com').events ?? '')
    return ['from', 'to'].map((name) => searchParams.get(name)?.slice(11, 16)).join()
  }
  const resolved = { to: 'resolved', startedAtMs: at(10) } as const
  t.equal(rangeOf({}), '09:30,09:35')
  t.equal(rangeOf({ kind: 'absence' }), '09:25,09:35', 'of a silent group before the silence')
  t.equal(rangeOf(resolved), '09:05,09:35', 'of a resolved alert since it began')
  t.equal(rangeOf({ ...resolved, kind: 'absence' }), '09:00,09:35')
})
