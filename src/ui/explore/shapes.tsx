import { Icon } from '../lib/icon.js'
import type { IconName } from '../lib/icon-names.js'
import { setParams } from '../lib/router.js'

const SHAPES = ['list', 'table', 'templates', 'JSON'] as const
/** The views of the matching events. */
export type Shape = (typeof SHAPES)[number]

const ICONS: Readonly<Record<Shape, IconName>> = {
  list: 'list',
  table: 'columns-3',
  templates: 'blocks',
  JSON: 'code',
}

export const toShape = (name: string | null): Shape =>
  SHAPES.find((shape) => shape === name) ?? 'list'

export const ShapeSwitch = ({ shape }: { readonly shape: Shape }) => (
  <div class="segments small" role="group" aria-label="Show as">
    {SHAPES.map((name) => (
      <button
        key={name}
        aria-pressed={name === shape}
        aria-label={name}
        title={`Show as ${name}`}
        onClick={() => setParams({ as: name === 'list' ? null : name }, { replace: true })}
      >
        <Icon name={ICONS[name]} size={14} />
      </button>
    ))}
  </div>
)
