import { useEffect, useRef, useState } from 'preact/hooks'

import { tokenize, type Token } from '../../query/lexer.js'
import { parseQuery } from '../../query/parser.js'
import type { Fault } from '../lib/api.js'
import { Icon } from '../lib/icon.js'
import { keep } from '../lib/recent.js'
import type { Span } from '../lib/time.js'
import type { Proposal } from './completion.js'

interface QueryBarProps {
  readonly line: string
  /** The time range of proposed values. */
  readonly span: Span
  /** The service's error in the line that was run. */
  readonly fault: Fault | null
  readonly onRun: (line: string) => void
  readonly handle?: { current: HTMLTextAreaElement | null }
}

/** The query line with syntax highlighting, completion, and errors at their positions. */
export function QueryBar({ line, span, fault, onRun, handle }: QueryBarProps) {
  const [text, setText] = useState(line)
  const [cursor, setCursor] = useState(line.length)
  const [proposals, setProposals] = useState<readonly Proposal[]>([])
  const [chosen, setChosen] = useState(-1)
  /**
   * out: without focus; typing: completions are shown; closed: with focus, no completion is shown, not even one that arrives late.
   * out ─focus─▶ typing ─Escape─▶ closed ─Escape─▶ out;  closed ─input─▶ typing
   */
  const [state, setState] = useState<'out' | 'typing' | 'closed'>('out')
  /** The line that was last run; a faulty one stays here with its fault. */
  const [tried, setTried] = useState(line)
  const area = useRef<HTMLTextAreaElement>(null)
  useEffect(() => setText(line), [line])
  useEffect(() => {
    if (handle !== undefined) handle.current = area.current
  })
  useProposals({ text, cursor, span, hasFocus: state === 'typing' }, (found) => {
    setProposals(found)
    setChosen(-1)
  })

  const run = (next: string): void => {
    setProposals([])
    setTried(next)
    if (parseQuery(next).fault !== null) return
    keep(next.trim())
    onRun(next.trim())
  }
  const accept = (proposal: Proposal): void => {
    // More letters may have been typed since the proposal was made.
    const typedSince = text.length - proposal.lineLength
    const next =
      text.slice(0, proposal.position) +
      proposal.insert +
      text.slice(proposal.position + proposal.length + typedSince)
    const at = proposal.position + proposal.insert.length
    setText(next)
    setCursor(at)
    // Further letters are typed after it.
    if (area.current !== null) area.current.value = next
    area.current?.setSelectionRange(at, at)
    if (proposal.isWhole) run(next)
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    const isListed = proposals.length > 0
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key] ?? 0
    if (step !== 0 && isListed) {
      setChosen(
        (chosen + step + proposals.length + 1) % (proposals.length + 1) ||
          (step > 0 ? 0 : proposals.length - 1),
      )
    } else if (event.key === 'Tab' && isListed && !event.shiftKey && text !== '') {
      const proposal = proposals[chosen] ?? fitting(proposals, text, cursor)
      if (proposal !== undefined) accept(proposal)
    } else if (event.key === 'Enter') {
      const proposal = proposals[chosen]
      if (proposal === undefined) run(text)
      else accept(proposal)
    } else if (event.key === 'Escape') {
      setProposals([])
      if (state === 'typing' && (isListed || text.trim() !== line)) setState('closed')
      else area.current?.blur()
    } else return
    event.preventDefault()
    event.stopPropagation()
  }
  const shown =
    text === line && fault !== null ? fault : localFault(text, state !== 'out' && text !== tried)
  const isListShown = state === 'typing' && proposals.length > 0
  return (
    <div class="query-bar">
      <Icon name="search" />
      <div class="query-line">
        <div class="mirror" aria-hidden="true">
          {coloured(text, shown)}{' '}
        </div>
        <textarea
          ref={area}
          rows={1}
          value={text}
          spellcheck={false}
          autocapitalize="off"
          autocomplete="off"
          placeholder="Search: words, severity:error, source:checkout, -host:web-1, duration_ms>300 …"
          aria-label="Query"
          aria-controls={isListShown ? 'proposals' : undefined}
          aria-autocomplete="list"
          aria-invalid={shown !== null}
          aria-describedby="query-problem"
          aria-activedescendant={chosen >= 0 ? `proposal-${chosen}` : undefined}
          onFocus={() => setState('typing')}
          onBlur={() => setState('out')}
          onInput={({ currentTarget }) => {
            setState('typing')
            setText(currentTarget.value.replaceAll(/[\r\n]+/g, ' '))
            setCursor(currentTarget.selectionStart)
          }}
          onSelect={({ currentTarget }) => setCursor(currentTarget.selectionStart)}
          onKeyDown={onKeyDown}
        />
        {isListShown && <Proposals all={proposals} chosen={chosen} onAccept={accept} />}
      </div>
      {text !== '' && (
        <button
          class="quiet square"
          aria-label="Clear the query"
          title="Clear"
          onClick={() => run('')}
        >
          <Icon name="x" />
        </button>
      )}
      <button class={text.trim() === line ? 'run' : 'primary run'} onClick={() => run(text)}>
        Run
      </button>
      <Problem
        fault={shown ?? (text === line ? hintOf(text) : null)}
        isHint={shown === null}
        text={text}
        onApply={run}
      />
    </div>
  )
}

/** The first proposal that still fits the typed text: the list may be older than the last letters. */
const fitting = (all: readonly Proposal[], text: string, cursor: number): Proposal | undefined =>
  all.find(({ position, label, isWhole }) => {
    const typed = text.slice(position, cursor).replace(/^"/, '').toLowerCase()
    return isWhole || label.toLowerCase().includes(typed)
  })

interface Typed {
  readonly text: string
  readonly cursor: number
  readonly span: Span
  readonly hasFocus: boolean
}

/** Loads proposals whenever the text or the cursor changes. */
function useProposals(
  { text, cursor, span, hasFocus }: Typed,
  onFound: (found: readonly Proposal[]) => void,
): void {
  useEffect(() => {
    if (!hasFocus) return
    let isOver = false
    void import('../later.js')
      .then(({ proposalsFor }) => proposalsFor(text, cursor, span))
      .then(
        (found) => !isOver && onFound(found),
        // Errors are ignored, because completion is optional.
        () => undefined,
      )
    return () => {
      isOver = true
    }
  }, [text, cursor, hasFocus])
}

/** A hint about a line without a fault that may have been meant otherwise. */
function hintOf(text: string): Fault | null {
  const parsed = parseQuery(text)
  return parsed.fault === null ? (parsed.hints[0] ?? null) : null
}

/** The fault of a line; while typing, only one that further letters cannot correct. */
function localFault(text: string, isTyping: boolean): Fault | null {
  const { fault } = parseQuery(text)
  if (fault === null) return null
  return isTyping && fault.position + fault.length >= text.trimEnd().length ? null : fault
}

interface ProblemProps {
  readonly fault: Fault | null
  readonly isHint: boolean
  readonly text: string
  readonly onApply: (line: string) => void
}

function Problem({ fault, isHint, text, onApply }: ProblemProps) {
  const { suggestion = null, position = 0, length = 0 } = fault ?? {}
  return (
    <p class={`problem ${isHint ? 'hint' : ''}`} id="query-problem" role="status">
      {fault !== null && (
        <>
          <Icon name={isHint ? 'lightbulb' : 'circle-alert'} size={14} /> {fault.message}
          {suggestion !== null && (
            <button
              class="link"
              onClick={() =>
                onApply(text.slice(0, position) + suggestion + text.slice(position + length))
              }
            >
              Use <code>{suggestion}</code>
            </button>
          )}
        </>
      )}
    </p>
  )
}

interface ProposalsProps {
  readonly all: readonly Proposal[]
  readonly chosen: number
  readonly onAccept: (proposal: Proposal) => void
}

const Proposals = ({ all, chosen, onAccept }: ProposalsProps) => (
  <ul class="proposals" id="proposals" role="listbox" aria-label="Completions">
    {all.map((proposal, at) => (
      <li
        key={proposal.label}
        id={`proposal-${at}`}
        role="option"
        aria-selected={at === chosen}
        // Keeps the focus in the text.
        onPointerDown={(event) => {
          event.preventDefault()
          onAccept(proposal)
        }}
      >
        <span>{proposal.label}</span>
        <small>{proposal.hint}</small>
      </li>
    ))}
  </ul>
)

function classOf(token: Token): string {
  if (token.kind === 'field') return 'name'
  if ('of' in token) return token.of === null ? 'word' : 'value'
  return 'mark-of'
}

/** The line in pieces with colours; the fault is underlined. */
function coloured(text: string, fault: Fault | null) {
  const parts: { readonly from: number; readonly to: number; readonly class: string }[] = []
  let at = 0
  for (const token of tokenize(text)) {
    if (token.start > at) parts.push({ from: at, to: token.start, class: '' })
    parts.push({ from: token.start, to: token.end, class: classOf(token) })
    at = token.end
  }
  if (at < text.length) parts.push({ from: at, to: text.length, class: '' })
  const from = fault?.position ?? -1
  const to = from + Math.max(1, fault?.length ?? 0)
  return parts.map((part) => {
    const isWrong = fault !== null && part.from < to && part.to > from
    return (
      <span key={part.from} class={isWrong ? `${part.class} wrong` : part.class}>
        {text.slice(part.from, part.to)}
      </span>
    )
  })
}
