/**
 * Bundles the web page into build/ui: scripts and styles with a hash of their content in their
 * names, and a sprite of icons, all of it compressed in advance, so that the service only sends
 * files.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { build, transformSync } from 'esbuild'

const OUT = 'build/ui'
const read = (name) => readFileSync(`src/ui/${name}`, 'utf8')
const hashOf = (text) => createHash('sha256').update(text).digest('hex').slice(0, 10)

rmSync(OUT, { recursive: true, force: true })
mkdirSync(OUT, { recursive: true })

/** Writes a file under a name with its hash. */
function put(stem, ending, text) {
  const name = `${stem}-${hashOf(text)}.${ending}`
  writeFileSync(`${OUT}/${name}`, text)
  return name
}

async function iconNames() {
  const { code } = transformSync(read('lib/icon-names.ts'), { loader: 'ts', format: 'esm' })
  return (await import(`data:text/javascript,${encodeURIComponent(code)}`)).ICON_NAMES
}

/** One file with a symbol for each icon that the page uses. */
async function spriteOf(names) {
  const symbols = names.map((name) => {
    const svg = readFileSync(`node_modules/lucide-static/icons/${name}.svg`, 'utf8')
    const [, inner = ''] = /<svg[^>]*>([\s\S]*)<\/svg>/.exec(svg) ?? []
    const drawn = inner.replaceAll(/\s*\n\s*/g, '')
    return `<symbol id="${name}" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round">${drawn}</symbol>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg">${symbols.join('')}</svg>`
}

/**
 * esbuild would split the code that is loaded first into six files, by the parts that import it.
 * Here every part that is loaded later imports all of it, which is loaded by then, so that it is
 * one file: fewer requests, and 2 kB less compressed.
 */
const firstIsOneFile = {
  name: 'first-is-one-file',
  setup: ({ onLoad }) =>
    onLoad({ filter: /src.ui.(?:later|more|operate|shell.log-in)\.tsx?$/ }, ({ path }) => ({
      contents: `import '${resolve('src/ui/app.tsx')}'\n${readFileSync(path, 'utf8')}`,
      loader: path.endsWith('x') ? 'tsx' : 'ts',
    })),
}

const sprite = put('icons', 'svg', await spriteOf(await iconNames()))
const icon = put('favicon', 'svg', read('favicon.svg'))
const { metafile } = await build({
  entryPoints: { page: 'src/ui/main.tsx', style: 'src/ui/styles/page.css' },
  outdir: OUT,
  bundle: true,
  splitting: true,
  format: 'esm',
  minify: true,
  metafile: true,
  target: ['es2022', 'chrome123', 'firefox120', 'safari17.5'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  define: { SPRITE_URL: JSON.stringify(`/ui/${sprite}`) },
  entryNames: '[name]-[hash]',
  chunkNames: 'part-[hash]',
  legalComments: 'none',
  logLevel: 'warning',
  plugins: [firstIsOneFile],
})
const outputOf = (entry) =>
  basename(
    Object.entries(metafile.outputs).find(([, { entryPoint }]) => entryPoint === entry)?.[0] ?? '',
  )
const script = outputOf('src/ui/main.tsx')
const names = {
  icon,
  sprite,
  script,
  // The file that the script imports first; the document preloads it.
  first: basename(metafile.outputs[`${OUT}/${script}`].imports[0].path),
  // The page's logo is visible first.
  mark: /<svg[^]*<\/svg>/.exec(read('shell/mark.tsx'))[0],
  style: outputOf('src/ui/styles/page.css'),
}
writeFileSync(
  `${OUT}/index.html`,
  read('index.html').replaceAll(/\{(\w+)\}/g, (_, name) => names[name]),
)
for (const name of readdirSync(OUT)) {
  const bytes = readFileSync(`${OUT}/${name}`)
  // Blocks of half the usual length (memLevel 7) make the first script 90 bytes smaller.
  writeFileSync(`${OUT}/${name}.gz`, gzipSync(bytes, { level: 9, memLevel: 7 }))
  writeFileSync(`${OUT}/${name}.br`, brotliCompressSync(bytes))
}
