import {
  type Curve,
  formatNumber,
  median,
  type Metric,
  rangeText,
  ratioText,
  type Report,
  type ScenarioResult,
  softwareOf,
} from './report.js'

const WIDTH = 820
const BAR = 18
const LABEL = 370
const PLOT = { width: WIDTH, height: 260, left: 60, bottom: 28, top: 12, right: 210 }
const COLOURS = [
  '#2f6f9f',
  '#c8553d',
  '#588157',
  '#8d5a97',
  '#b08900',
  '#3a7d7c',
  '#6b705c',
  '#a23b72',
]
const CURVES_SHOWN = COLOURS.length

const STYLE = `body{font:14px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color:#222;background:#fff}
h1{font-size:1.4rem}h2{margin-top:2.5rem;font-size:1.15rem}h3{font-size:1rem;margin:1.2rem 0 0}table{border-collapse:collapse}
td,th{padding:.15rem .7rem;text-align:right;border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}
.wrong{color:#b00020;font-weight:600}.quiet{color:#666}svg{display:block;margin:1rem 0;max-width:100%}svg text{font:11px system-ui,sans-serif;fill:#333}`

/** Renders a self-contained page: figures, bars by unit, and latency curves. */
export function renderHtml(report: Report): string {
  const facts = [report.machine, softwareOf(report), report.startedAt, report.command]
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>Bench report</title>
<meta name="viewport" content="width=device-width"><style>${STYLE}</style>
<h1>Bench report</h1><p class="quiet">${facts.map(escape).join('<br>')}</p>
${report.scenarios.map(renderScenario).join('\n')}</html>
`
}

function renderScenario(result: ScenarioResult): string {
  const options = Object.entries(result.options).map(([name, value]) => `${name} ${value}`)
  const wrong = result.checks.filter(({ ok }) => !ok)
  const right = result.checks.length - wrong.length
  return `<section><h2>${escape(result.scenario)}</h2><p class="quiet">${escape(options.join(', '))}</p>
${renderBars(result.metrics)}
${renderCurves(result.curves)}
${renderTable(result.metrics)}
${result.checks.length === 0 ? '' : `<p>${right} checks hold${wrong.length === 0 ? '.' : ', these do not:'}</p>`}
<ul>${wrong.map(({ name, detail }) => `<li class="wrong">${escape(name)}: ${escape(detail)}</li>`).join('')}</ul>
${result.skipped.map((reason) => `<p class="quiet">skipped: ${escape(reason)}</p>`).join('')}</section>`
}

function renderTable(metrics: readonly Metric[]): string {
  const rows = metrics.map((metric) => {
    const { name, unit, samples } = metric
    const cells = [formatNumber(median(samples)), escape(unit), rangeText(metric, 'to')]
    return `<tr><td>${escape(name)}</td>${[...cells, escape(ratioText(metric, metrics))].map((cell) => `<td>${cell}</td>`).join('')}</tr>`
  })
  return `<table><tr><th>figure</th><th>median</th><th>unit</th><th>range</th><th>to its limit</th></tr>${rows.join('')}</table>`
}

/** Bar charts of the figures that share a unit and a percentile. */
function renderBars(metrics: readonly Metric[]): string {
  const scales = [...new Set(metrics.map(scaleOf))].filter((scale) => scale !== '')
  return scales
    .map((scale) => [scale, metrics.filter((metric) => scaleOf(metric) === scale)] as const)
    .filter(([, group]) => group.length > 1)
    .map(([scale, group]) => barChart(scale, group))
    .join('')
}

const scaleOf = ({ name, unit }: Metric): string => {
  const percentile = /, (p\d+|max)$/.exec(name)?.[1]
  return percentile === undefined ? unit : `${unit}, ${percentile}`
}

function barChart(scale: string, group: readonly Metric[]): string {
  const most = Math.max(...group.map(({ samples }) => Math.max(...samples)), Number.MIN_VALUE)
  const width = WIDTH - LABEL - 80
  const height = group.length * BAR + 8
  const bars = group.map(({ name, samples }, i) => {
    const [y, value] = [i * BAR + 4, median(samples)]
    const [low, high] = [Math.min(...samples), Math.max(...samples)].map(
      (n) => LABEL + (n / most) * width,
    )
    const colour = name.startsWith('limit') ? '#999' : COLOURS[0]
    return `<text x="${LABEL - 8}" y="${y + 12}" text-anchor="end">${escape(name)}</text>
<rect x="${LABEL}" y="${y + 2}" width="${((value / most) * width).toFixed(1)}" height="${BAR - 5}" fill="${colour}"/>
<line x1="${low?.toFixed(1)}" x2="${high?.toFixed(1)}" y1="${y + 8.5}" y2="${y + 8.5}" stroke="#222"/>
<text x="${((high ?? 0) + 6).toFixed(1)}" y="${y + 12}">${formatNumber(value)}</text>`
  })
  return `<h3>${escape(scale)}</h3><svg viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" role="img" aria-label="${escape(scale)}">${bars.join('')}</svg>`
}

/** Latency, on a logarithmic scale, over percentile; only the slowest curves when there are many. */
function renderCurves(curves: readonly Curve[]): string {
  const slowest = (curve: Curve): number => curve.points.find(([at]) => at === 95)?.[1] ?? 0
  const shown = [...curves].sort((a, b) => slowest(b) - slowest(a)).slice(0, CURVES_SHOWN)
  const values = shown.flatMap(({ points }) => points.map(([, ms]) => ms)).filter((ms) => ms > 0)
  if (values.length === 0) return ''
  const [low, high] = [Math.log10(Math.min(...values)), Math.log10(Math.max(...values))]
  const floor = Math.floor(low)
  const decades = Math.max(1, Math.ceil(high) - floor)
  const { width, height, left, bottom, top, right } = PLOT
  const x = (at: number): number => left + (at / 100) * (width - left - right)
  const y = (ms: number): number =>
    height -
    bottom -
    ((Math.log10(Math.max(ms, 10 ** floor)) - floor) / decades) * (height - top - bottom)
  const lines = shown.map(({ name, points }, i) => {
    const path = points.map(([at, ms]) => `${x(at).toFixed(1)},${y(ms).toFixed(1)}`).join(' ')
    const label = `<text x="${width - right + 26}" y="${top + 12 + i * 16}">${escape(name)}</text>`
    const swatch = `<rect x="${width - right + 12}" y="${top + 4 + i * 16}" width="10" height="10" fill="${COLOURS[i]}"/>`
    return `<polyline points="${path}" fill="none" stroke="${COLOURS[i]}" stroke-width="1.8"/>${swatch}${label}`
  })
  const grid = Array.from({ length: decades + 1 }, (_, i) => {
    const at = y(10 ** (floor + i)).toFixed(1)
    return `<line x1="${left}" x2="${width - right}" y1="${at}" y2="${at}" stroke="#ddd"/><text x="${left - 6}" y="${Number(at) + 4}" text-anchor="end">${10 ** (floor + i)} ms</text>`
  })
  const ticks = [0, 25, 50, 75, 95].map(
    (at) => `<text x="${x(at).toFixed(1)}" y="${height - 8}" text-anchor="middle">p${at}</text>`,
  )
  return `<h3>latency by percentile</h3><svg viewBox="0 0 ${width} ${height}" width="${width}" role="img" aria-label="latency by percentile">${grid.join('')}${ticks.join('')}${lines.join('')}</svg>`
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
}

const escape = (text: string): string => text.replace(/[&<>"]/g, (char) => ESCAPES[char] ?? char)
