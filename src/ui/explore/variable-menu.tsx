import { useLayoutEffect, useRef } from 'preact/hooks'

import { quoted } from '../../query/printer.js'
import { Icon } from '../lib/icon.js'
import { toggled } from '../lib/query-edit.js'
import { copy } from '../shell/notice.js'
import type { Row } from './rows.js'
import { topValues } from './variables.js'

/** A variable of a message that was clicked, with its position. */
export interface PressedVariable {
  readonly row: Row
  readonly text: string
  readonly x: number
  readonly y: number
}

interface VariableMenuProps {
  readonly pressed: PressedVariable
  readonly line: string
  readonly onLine: (line: string) => void
  readonly onOpen: () => void
  readonly onClose: () => void
}

const WIDTH = 260
const HEIGHT = 220

/** The actions on a variable in a row. Arrow keys move within the menu; Escape, scrolling and a click elsewhere close it. */
export function VariableMenu({ pressed, line, onLine, onOpen, onClose }: VariableMenuProps) {
  const { row, text, x, y } = pressed
  const root = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    const before = document.activeElement
    root.current?.querySelector('button')?.focus()
    const onPress = ({ target }: Event): void => {
      if (!(target instanceof Node && root.current?.contains(target) === true)) onClose()
    }
    addEventListener('pointerdown', onPress)
    addEventListener('scroll', onPress, true)
    return () => {
      removeEventListener('pointerdown', onPress)
      removeEventListener('scroll', onPress, true)
      if (before instanceof HTMLElement) before.focus({ preventScroll: true })
    }
  }, [pressed])
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step === undefined && event.key !== 'Escape') return
    event.preventDefault()
    event.stopPropagation()
    if (step === undefined) return onClose()
    const items = [...(root.current?.querySelectorAll<HTMLElement>('.item') ?? [])]
    const at = items.findIndex((item) => item === document.activeElement)
    items.at((at + step) % items.length)?.focus()
  }
  const ask = (clause: string) => (): void => {
    onClose()
    onLine(toggled(line, clause))
  }
  const left = Math.max(8, Math.min(x, innerWidth - WIDTH))
  const top = y + HEIGHT > innerHeight ? Math.max(8, y - HEIGHT) : y + 12
  return (
    <div
      class="panel variable-menu"
      role="dialog"
      aria-label={`Value ${text}`}
      ref={root}
      style={{ left: `${left}px`, top: `${top}px` }}
      onKeyDown={onKeyDown}
    >
      <h3 title={text}>{text}</h3>
      <button class="item" onClick={ask(quoted(text))}>
        <Icon name="plus" /> Only events with this text
      </button>
      <button class="item" onClick={ask(`-${quoted(text)}`)}>
        <Icon name="minus" /> Without events with this text
      </button>
      <a class="item" href={topValues(row.template_id)} onClick={onClose}>
        <Icon name="blocks" /> Top values
      </a>
      <button
        class="item"
        onClick={() => {
          onClose()
          void copy(text, 'The value is copied.')
        }}
      >
        <Icon name="copy" /> Copy
      </button>
      <button
        class="item"
        onClick={() => {
          onClose()
          onOpen()
        }}
      >
        <Icon name="list" /> Open the event
      </button>
    </div>
  )
}
