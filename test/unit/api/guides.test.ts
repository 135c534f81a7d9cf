/** The guides as files of the repository and as pages of the service. */
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import { describeApi } from '../../../src/api/description.js'
import { createDocsRoutes } from '../../../src/api/docs.js'
import { GUIDES, renderGuide } from '../../../src/api/guides.js'
import { startServer } from '../../support/http.js'

const root = fileURLToPath(new URL('../../../../', import.meta.url))
const folder = join(root, 'src/docs')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const idsOf = (html: string): readonly string[] =>
  [...html.matchAll(/<[^>]+ id="([^"]+)"/g)].map(([, id = '']) => id)

t.test('every file of the folder is a guide, and the README links to each', async (t) => {
  const files = readdirSync(folder)
    .filter((file) => file !== 'images')
    .map((file) => file.replace(/\.md$/, ''))
  t.same([...GUIDES].toSorted(), files.toSorted())
  const readme = read('README.md')
  for (const name of GUIDES) t.match(readme, `](src/docs/${name}.md)`, name)
  t.ok(readme.split('\n').length <= 201, 'the README has at most 200 lines')
})

t.test('every guide is served, and its links lead somewhere', async (t) => {
  const { url } = startServer(t, {
    routes: createDocsRoutes(() => describeApi('0')),
  })
  const pages = new Map<string, string>()
  for (const name of GUIDES) {
    const reply = await fetch(`${url}/docs/${name}`)
    t.equal(reply.status, 200, name)
    t.equal(reply.headers.get('content-type'), 'text/html; charset=utf-8')
    const policy = reply.headers.get('content-security-policy') ?? ''
    t.match(policy, /default-src 'none'; script-src 'self'; style-src 'self'/)
    pages.set(`/docs/${name}`, await reply.text())
  }
  let links = 0
  for (const [path, html] of pages) {
    const ids = idsOf(html)
    t.same(ids, [...new Set(ids)], `${path} has each id once`)
    t.notMatch(
      html,
      /<(?:script(?! type="module" src="\/docs\/)|style|iframe|img(?! src="\/docs\/images\/))\b|style="|\son\w+="/,
    )
    for (const [, href = ''] of html.matchAll(/(?:href|src)="([^"]+)"/g)) {
      links += 1
      if (href.startsWith('/docs/images/')) {
        t.equal((await fetch(url + href)).status, 200, href)
        continue
      }
      if (/^(?:https:\/\/|http:\/\/127\.0\.0\.1:8000\/(?:docs)?$|data:,$)/.test(href)) continue
      const [to = '', hash = ''] = href.split('#')
      const target = to === '' ? html : pages.get(to)
      if (hash !== '') t.ok(idsOf(target ?? '').includes(hash), `${path}: ${href}`)
      else if (target === undefined)
        t.equal((await fetch(url + to)).status, 200, `${path}: ${href}`)
    }
  }
  t.ok(links > 1_000, `${links} links`)
  const unknown = await fetch(`${url}/docs/no-such-guide`)
  t.equal(unknown.status, 404)
  t.match(await unknown.json(), { detail: { code: 'route_not_found' } })
})

t.test('the list beside each guide holds the headings of all, for the search', async (t) => {
  const { url } = startServer(t, {
    routes: createDocsRoutes(() => describeApi('0')),
  })
  const html = await (await fetch(`${url}/docs/security`)).text()
  for (const name of GUIDES) {
    const headings = [...read(`src/docs/${name}.md`).matchAll(/^#{2,3} (.+)$/gm)]
    t.ok(headings.length >= 2, name)
    const listed = html.split(`href="/docs/${name}#`).length - 1
    t.ok(listed >= headings.length - codeHeadings(name), `${name}: ${listed} of ${headings.length}`)
  }
  t.match(html, '<a href="/docs/security" aria-current="page">')
  t.match(html, '<a href="/docs/operations#backup-and-restore">Backup and restore</a>')
})

/** Lines of code blocks that look like headings. */
const codeHeadings = (name: string): number =>
  [...read(`src/docs/${name}.md`).matchAll(/^```[\s\S]*?^```/gm)].flatMap(([block]) => [
    ...block.matchAll(/^#{2,3} /gm),
  ]).length

t.test(
  'in a repository the relative links of README and guides lead to files and headings',
  async (t) => {
    const files = [
      'README.md',
      'src/README.md',
      'deploy/README.md',
      'bench/README.md',
      'bench/NOTES.md',
    ]
    for (const file of [...files, ...GUIDES.map((name) => `src/docs/${name}.md`)]) {
      const text = read(file).replaceAll(/^```[\s\S]*?^```/gm, '')
      for (const [, href = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
        if (href.startsWith('http')) continue
        const [to = '', hash] = href.split('#')
        const path = to === '' ? file : join(dirname(file), to)
        t.ok(existsSync(join(root, path)), `${file}: ${href}`)
        if (hash === undefined || !path.endsWith('.md')) continue
        const ids = idsOf(renderGuide('changes', read(path)).html)
        t.ok(ids.includes(hash), `${file}: ${href}`)
      }
    }
  },
)

t.test('every test that the guide to security names exists', async (t) => {
  const [, section = ''] = read('src/docs/security.md').split('## Threat model')
  const named = [...section.matchAll(/`((?:unit|integration|flow|fuzz)[\w/…-]*)`/g)]
  t.ok(named.length > 20, `${named.length} tests are named`)
  const files = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
  for (const [, name = ''] of named) {
    const prefix = name.replace(/-?…$/, '')
    t.ok(
      files.some((file) => file.startsWith(prefix)),
      name,
    )
  }
})

t.test('a picture of the guides is shown', async (t) => {
  const { html } = renderGuide('api', '# A\n![A "b" <i>](images/explore.png) ![c](images/../x.png)')
  const shown = [...html.matchAll(/<img [^>]*>/g)].map(([tag]) => tag)
  t.equal(shown.length, 1)
  t.match(shown[0], 'src="/docs/images/explore.png"')
  t.notMatch(shown[0], '<i>')
})

t.test('a guide is text: HTML, images and other schemes do nothing', async (t) => {
  const { html, headings, title } = renderGuide(
    'api',
    [
      '# A & B',
      '## Twice',
      '## Twice',
      '## `code`, and <b>more</b>',
      '<script>evil()</script>',
      '',
      'a <img src=x onerror=evil()> b ![<i>](https://example.com/x.png)',
      '',
      '[one](javascript:evil()) [two](../../src/main.ts) [three](operations.md#settings) [four](none.md)',
    ].join('\n'),
  )
  t.equal(title, 'A & B')
  t.same(
    headings.map(({ id }) => id),
    ['twice', 'twice-1', 'code-and-bmoreb'],
  )
  t.notMatch(html, /<(?:script|img|i|b)\b/)
  t.match(html, '&lt;script&gt;')
  t.notMatch(html, 'javascript:')
  t.same(
    [...html.matchAll(/<a href="([^#"][^"]*)"/g)].map(([, href]) => href),
    ['/docs/operations#settings'],
  )
})

/** The parts of a shell command, to the end of its line, a pipe, a redirection or a comment. */
function words(text: string): readonly string[] {
  const found: string[] = []
  const word = /\s*(?:\\\n\s*)*((?:'[^']*'|"[^"]*"|\$\([^)]*\)|[^\s'"|>;)#])+)/y
  for (let at = 0, match = word.exec(text); match !== null; match = word.exec(text)) {
    const between = text.slice(at, word.lastIndex - (match[1]?.length ?? 0))
    if (between.replaceAll('\\\n', '').includes('\n')) break
    found.push(
      (match[1] ?? '').replaceAll(/'([^']*)'|"([^"]*)"/g, (_, a: string, b: string) => a ?? b),
    )
    at = word.lastIndex
  }
  return found
}

/** What `api PATH …` of a guide, or a curl to the API, asks for. */
function readCommand([target = '', ...options]: readonly string[]) {
  const [path = '', search = ''] = target.split('?')
  const valuesOf = (...names: readonly string[]) =>
    options.filter((_, i) => names.includes(options[i - 1] ?? ''))
  const data = valuesOf('-d', '--data-urlencode', '--data-binary')
  const isQuery = options.includes('-G')
  const isWrite = valuesOf('-F').length > 0 || (data.length > 0 && !isQuery)
  return {
    path: path.replaceAll(/\$\w+/g, '1'),
    method: (valuesOf('-X')[0] ?? (isWrite ? 'POST' : 'GET')).toLowerCase(),
    query: [...search.split('&'), ...(isQuery ? data : [])].filter((pair) => pair !== ''),
    body: isQuery ? undefined : data[0],
    isJson: valuesOf('-H').includes('Content-Type: application/json'),
  }
}

/** Whether a path of the API's description stands for what a guide asks. */
const matches = (known: string, asked: string): boolean =>
  new RegExp(`^${known.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(`/api/${asked}`)

t.test('the requests that README and guides show can be made as they stand', async (t) => {
  const api = JSON.parse(JSON.stringify(describeApi('0')))
  const ajv = new Ajv2020({ strict: false, validateFormats: false }).addSchema(api, 'api')
  const paths = Object.keys(api.paths)
  let requests = 0
  for (const file of ['README.md', ...GUIDES.map((name) => `src/docs/${name}.md`)]) {
    for (const [block] of read(file).matchAll(/^```sh[\s\S]*?^```/gm)) {
      for (const { index } of block.matchAll(/(?<=^|\$\()(?:api|curl) /gm)) {
        const command = words(block.slice(index))
        const url = command.findIndex((word) => word.startsWith('http://127.0.0.1:8000/api/'))
        const isCurl = command[0] === 'curl'
        if (isCurl && (url === -1 || command.join(' ').includes('$@'))) continue
        const target = isCurl ? (command[url] ?? '').slice(26) : (command[1] ?? '')
        const asked = readCommand([target, ...command.slice(isCurl ? url + 1 : 2)])
        const what = `${file}: ${command.join(' ')}`
        requests += 1
        const literal = paths.find((known) => known === `/api/${asked.path}`)
        const path = literal ?? paths.find((known) => matches(known, asked.path))
        const operation = path === undefined ? undefined : api.paths[path][asked.method]
        if (!t.ok(operation, what) || path === undefined) continue
        const named = (operation.parameters ?? []).map(({ name }: { name: string }) => name)
        for (const pair of asked.query) t.ok(named.includes(pair.split('=')[0]), `${what}: ${pair}`)
        if (asked.body === undefined || /[\\$]|^@/.test(asked.body)) continue
        t.ok(asked.isJson, `${what}: a body of JSON says so`)
        const pointer = `api#/paths/${path.replaceAll('/', '~1').replaceAll('{', '%7B').replaceAll('}', '%7D')}`
        const where = `${pointer}/${asked.method}/requestBody/content/application~1json/schema`
        const isValid = ajv.compile({ $ref: where })
        t.ok(isValid(JSON.parse(asked.body)), `${what}: ${ajv.errorsText(isValid.errors)}`)
      }
    }
  }
  t.ok(requests >= 30, `${requests} requests`)
})

t.test('the paths of the API, scripts and files that README and guides name exist', async (t) => {
  const { paths } = JSON.parse(JSON.stringify(describeApi('0')))
  const { scripts } = JSON.parse(read('package.json'))
  let names = 0
  for (const file of ['README.md', ...GUIDES.map((name) => `src/docs/${name}.md`)]) {
    if (file === 'src/docs/changes.md') continue
    const text = read(file)
    for (const [what, method = '', path = ''] of text.matchAll(/`([A-Z]+) \/(api\/[^\s`?…]+)`/g)) {
      names += 1
      const asked = path.slice('api/'.length)
      const known = Object.keys(paths).filter((one) => matches(one, asked))
      t.ok(
        known.some((one) => method.toLowerCase() in paths[one]),
        `${file}: ${what}`,
      )
    }
    for (const [what, name = ''] of text.matchAll(/npm run (?:-s )?([a-z][a-z:-]*)/g)) {
      names += 1
      t.ok(name in scripts, `${file}: ${what}`)
    }
    for (const [, path = ''] of text.matchAll(/`((?:bench|deploy|schema|src)\/[\w./-]+)`/g)) {
      names += 1
      if (file !== 'src/docs/asvs.md') t.ok(existsSync(join(root, path)), `${file}: ${path}`)
    }
  }
  t.ok(names > 150, `${names} names`)
})
