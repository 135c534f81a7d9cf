interface SparklineProps {
  readonly values: readonly number[]
  readonly width?: number
  readonly height?: number
  readonly class?: string
}

/** Bars without axes that show the recent course of a number. */
export function SparkBars({ values, width = 96, height = 22, class: name = '' }: SparklineProps) {
  const most = Math.max(...values, 1)
  const step = width / Math.max(values.length, 1)
  return (
    <svg class={`sparkline ${name}`} width={width} height={height} aria-hidden="true">
      {values.map((value, i) => {
        const size = value === 0 ? 0 : Math.max(1.5, (value / most) * (height - 1))
        return (
          <rect
            key={i}
            x={i * step}
            y={height - size}
            width={Math.max(1, step - 1)}
            height={size}
          />
        )
      })}
    </svg>
  )
}
