import { test } from 'tap'
import { renderTemplate, templateFault } from '../../../src/alerting/template.js'

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

void test('nothing else can be used', async (t) => {
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
