import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Marked, Renderer } from 'marked'
import type { Tokens } from 'marked'

/**
 * The guides of `src/docs` as pages. Each is Markdown that also reads well in a repository viewer: links between guides
 * are relative there (`operations.md#settings`) and lead to `/docs/operations#settings` here; a link to another file of
 * the repository becomes plain text. HTML within a guide is shown as text.
 *
 * All pages are rendered at the first request for one of them, because the list of contents beside each page holds the
 * headings of all. The list is plain HTML; a script only filters it.
 */
export const GUIDES = [
  'getting-started',
  'sending-logs',
  'api',
  'query-language',
  'tail-and-export',
  'templates-and-priority',
  'insights',
  'alerts',
  'operations',
  'cluster',
  'reliability',
  'security',
  'asvs',
  'performance',
  'architecture',
  'changes',
] as const

export type GuideName = (typeof GUIDES)[number]

interface Heading {
  readonly depth: number
  readonly id: string
  readonly html: string
}

interface Guide {
  readonly name: GuideName
  readonly title: string
  readonly headings: readonly Heading[]
  readonly html: string
}

/**
 * Reads the guides.
 *
 * @param template a page with the comments `title`, `contents`, `text` and `next` where they belong
 * @returns the page of each guide, rendered at the first call
 * @throws Error when a guide is missing
 */
export function createGuides(template: string): (name: GuideName) => string {
  const texts = GUIDES.map((name) => [name, readGuide(name)] as const)
  let pages: ReadonlyMap<GuideName, string> | null = null
  return (name) => {
    pages ??= renderPages(template, texts)
    return pages.get(name) ?? ''
  }
}

const readGuide = (name: GuideName): string =>
  readFileSync(fileURLToPath(new URL(import.meta.resolve(`#docs/${name}.md`))), 'utf8')

function renderPages(
  template: string,
  texts: readonly (readonly [GuideName, string])[],
): ReadonlyMap<GuideName, string> {
  const guides = texts.map(([name, text]) => renderGuide(name, text))
  const pages = guides.map((guide, i) => {
    const parts: Readonly<Record<string, string>> = {
      title: escape(guide.title),
      contents: guides.map((other) => renderContents(other, other === guide)).join('\n'),
      text: guide.html,
      next: renderNeighbours(guides[i - 1], guides[i + 1]),
    }
    const html = template.replaceAll(/<!-- (\w+) -->/g, (_, part: string) => parts[part] ?? '')
    return [guide.name, html] as const
  })
  return new Map(pages)
}

function renderContents({ name, title, headings }: Guide, isCurrent: boolean): string {
  const items = headings.map(
    ({ depth, id, html }) =>
      `<li class="depth-${depth}"><a href="/docs/${name}#${escape(id)}">${html}</a></li>`,
  )
  const current = isCurrent ? ' aria-current="page"' : ''
  const link = `<a href="/docs/${name}"${current}>${escape(title)}</a>`
  return `<li>${link}<ol>${items.join('')}</ol></li>`
}

function renderNeighbours(previous: Guide | undefined, next: Guide | undefined): string {
  const link = (guide: Guide | undefined, rel: string): string =>
    guide === undefined
      ? '<span></span>'
      : `<a rel="${rel}" href="/docs/${guide.name}">${escape(guide.title)}</a>`
  return link(previous, 'prev') + link(next, 'next')
}

/** Renders one guide; its first heading is its title. */
export function renderGuide(name: GuideName, text: string): Guide {
  const headings: Heading[] = []
  let title: string = name
  const taken = new Map<string, number>()
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text: raw }) {
        const html = this.parser.parseInline(tokens)
        const id = uniqueId(slug(raw), taken)
        if (depth === 1) title = raw
        else if (depth <= 3)
          headings.push({ depth, id, html: html.replaceAll(/<\/?a\b[^<>]*>/g, '') })
        return `<h${depth} id="${escape(id)}">${html}${depth === 1 ? '' : anchorTo(id)}</h${depth}>\n`
      },
      link({ href, tokens }) {
        return renderLink(href, this.parser.parseInline(tokens))
      },
      table(token: Tokens.Table) {
        return `<div class="table">${Renderer.prototype.table.call(this, token)}</div>\n`
      },
      image: ({ href, text: alternative }) => renderImage(href, alternative),
      html: ({ text: raw }) => (raw.startsWith('<!--') ? '' : escape(raw)),
    },
  })
  const html = marked.parse(text, { async: false })
  return { name, title, headings, html }
}

const anchorTo = (id: string): string =>
  `<a class="anchor" href="#${escape(id)}" aria-label="Link to this section">#</a>`

/** A picture of `images/`; any other is replaced by its alternative text. */
const renderImage = (href: string, alternative: string): string =>
  /^images\/[a-z]+\.png$/.test(href)
    ? `<img src="/docs/${href}" alt="${escape(alternative)}" loading="lazy">`
    : escape(alternative)

function renderLink(href: string, html: string): string {
  if (href.startsWith('#')) return `<a href="${escape(href)}">${html}</a>`
  if (/^https?:\/\//.test(href)) return `<a rel="noreferrer" href="${escape(href)}">${html}</a>`
  const [, name = '', hash = ''] = /^([a-z-]+)\.md(#[\w-]+)?$/.exec(href) ?? []
  const isGuide = GUIDES.some((guide) => guide === name)
  return isGuide ? `<a href="/docs/${name}${hash}">${html}</a>` : html
}

/** The id that repository viewers give a heading. */
const slug = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
    .replaceAll(' ', '-')

function uniqueId(id: string, taken: Map<string, number>): string {
  const times = taken.get(id) ?? 0
  taken.set(id, times + 1)
  return times === 0 ? id : `${id}-${times}`
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
}

const escape = (text: string): string =>
  text.replaceAll(/[&<>"]/g, (character) => ENTITIES[character] ?? character)
