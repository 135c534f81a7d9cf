import type { DecodeContext } from '../../model/event.js'
import { type Draft, emptyDraft, finishDraft } from './draft.js'
import { isRecord, toWellFormed } from './json-value.js'
import { readLogfmt } from './logfmt.js'
import { parseJson } from './json-text.js'
import { mergeDrafts, type RecordDecoder } from './record.js'
import { TagCollector } from './tags.js'
import { W3cFields } from './text-access.js'
import { INNER_FORMS, NPM_FORMS, TEXT_FORMS, type TextForm } from './text-forms.js'
import { readHead, type TextHead } from './text-line.js'
import type { Clock } from './zone.js'

/** Lines that are sampled to find out whether the records of a file begin with a head. */
const SAMPLE_LINES = 2000

/** Lines of a stack trace, which never begin a record. */
const TRACE_LINE =
  /^(?:\s+at |\s+File "|\s*\.\.\. \d+ (?:more|common)|\s*Caused by: |\s*Suppressed: |Traceback \(|#\d{1,4} (?:\/|\{main\}|\[internal function\])|\[stacktrace\]$|Stack trace:$|\s+thrown in )/
/** Lines of Python's traces, and the line that ends them: `ValueError: bad`. */
const PYTHON_TRACE = /^(?:Traceback \(|\s+File ")/
const TRACE_END = /^[A-Za-z_][\w.]{0,127}(?::|$)/

/** The first line that a Go program writes when it crashes, before the stacks of its goroutines. */
const GO_PANIC = /^(?:panic: |fatal error: |unexpected fault address |SIG[A-Z]{2,5}: )/
const GOROUTINE = /^goroutine \d{1,20} (?:gp=\S{1,32} )?(?:m=\S{1,16} )?(?:mp=\S{1,32} )?\[/
const GO_LINE =
  /^(?:\t|created by |exit status \d|\[signal |\[originating |\[recovered|\.\.\.|PC=|r\w{1,3} {1,8}0x|panic: |runtime stack:)/

const isGoLine = (text: string): boolean =>
  GO_LINE.test(text) ||
  GOROUTINE.test(text) ||
  (text.endsWith(')') && /^[A-Za-z_][\w./-]{0,512}[.([]/.test(text))

const W3C_DIRECTIVE = /^#(?:Fields|Software|Version|Date|Start-Date|End-Date|Remark|GMT-Offset):/

/**
 * Decodes a text file line by line: the forms of `text-forms.ts`, rows of W3C logs, logfmt, and JSON lines among
 * them. Blank lines are skipped.
 *
 * One line is one record, with these exceptions. Parts of a line that a container runtime split are joined. A line of a
 * stack trace, of a goroutine, or that the form of the record before asks for, and an indented line below a line with a
 * head, belong to the record before. In a file where at least half of the lines that are not indented have a head, any line
 * without one belongs to the record before, if that has a time. A record beyond the message limit is split into records with
 * the same head. A record without a time has that of the record before.
 */
export function decodeText(text: string, context: DecodeContext, decoder: RecordDecoder): void {
  const lines = text.split('\n')
  const assembler = new RecordAssembler(context, decoder, lines)
  for (const [i, line] of lines.entries()) {
    assembler.add(i + 1, line.endsWith('\r') ? line.slice(0, -1) : line)
  }
  assembler.flush()
}

function haveHeads(lines: readonly string[], clock: Clock): boolean {
  let flush = 0
  let heads = 0
  for (const line of lines.slice(0, SAMPLE_LINES)) {
    if (line.trim() === '' || /^[\s}\])]/.test(line)) continue
    // A line of JSON is a record of its own.
    if (
      line.startsWith('{') ||
      TRACE_LINE.test(line) ||
      GO_PANIC.test(line) ||
      isGoLine(line.trimEnd())
    )
      continue
    flush += 1
    if (readHead(line, clock) !== null) heads += 1
  }
  return heads * 2 >= flush && heads > 0
}

interface Pending {
  readonly line: number
  readonly draft: Draft
  readonly head: TextHead | null
  readonly texts: string[]
  chars: number
  /** Whether it has stacks of goroutines. */
  isGo: boolean
  /** Whether its last line is one of a trace of Python. */
  isPython: boolean
}

/** Reads the message of a line as JSON or as a line of another form, if the form of its head allows it. */
export function unwrapHead(head: TextHead, clock: Clock, decoder: RecordDecoder): Draft {
  const { wraps } = head.form
  if (wraps === undefined) return head.draft
  // A cookie before JSON in syslog lines.
  const text = head.draft.message.replace(/^ ?@cee: ?/, '')
  const inner = readInner(text, wraps === 'any' ? TEXT_FORMS : INNER_FORMS, clock, decoder)
  return inner === null ? head.draft : mergeDrafts(head.draft, inner)
}

function readInner(
  text: string,
  forms: readonly TextForm[],
  clock: Clock,
  decoder: RecordDecoder,
): Draft | null {
  if (text.startsWith('{')) return decoder.readWrapped(text)
  return readHead(text, clock, forms)?.draft ?? null
}

/** Joins the lines of one file into records. */
class RecordAssembler {
  readonly #context: DecodeContext
  readonly #decoder: RecordDecoder
  readonly #haveHeads: boolean
  readonly #forms: readonly TextForm[]
  /** Whether the file is a W3C log, and the fields of its next rows. */
  readonly #isW3c: boolean
  #fields: W3cFields | null = null
  /** By stream: the first parts of a line that the container runtime split. */
  readonly #partial = new Map<string, { readonly line: number; text: string }>()
  #pending: Pending | null = null
  #lastMs: number | null = null

  constructor(context: DecodeContext, decoder: RecordDecoder, lines: readonly string[]) {
    this.#context = context
    this.#decoder = decoder
    this.#haveHeads = haveHeads(lines, context)
    this.#isW3c = lines.slice(0, 100).some((line) => line.startsWith('#Fields:'))
    // npm numbers its lines from 0.
    this.#forms = /^0 [a-z]{4,8} /.test(lines[0] ?? '') ? NPM_FORMS : TEXT_FORMS
  }

  add(line: number, text: string): void {
    if (text.trim() === '') return
    if (this.#isW3c && this.#addRow(line, text)) return
    if (this.#addRecord(line, text)) return
    const head = readHead(text, this.#context, this.#forms)
    if (head === null) this.#addHeadless(line, text)
    else if (head.stream !== '') this.#addPiece(line, head)
    else if (this.#isDetail(head)) this.#append(line, head.draft.message)
    else this.#begin(line, head, unwrapHead(head, this.#context, this.#decoder))
  }

  flush(): void {
    for (const [stream, { line, text }] of this.#partial) {
      this.#begin(line, null, { ...emptyDraft(), message: text, tags: { stream } })
    }
    this.#partial.clear()
    this.#emit()
  }

  /** Adds a row of a W3C log, or reads the names of the next rows' fields. */
  #addRow(line: number, text: string): boolean {
    if (W3C_DIRECTIVE.test(text)) {
      if (text.startsWith('#Fields:')) this.#fields = new W3cFields(text)
      return true
    }
    const draft = emptyDraft()
    const tags = new TagCollector()
    if (this.#fields?.read(text, draft, { tags, clock: this.#context }) !== true) return false
    this.#emit()
    draft.tags = tags.finish()
    this.#decoder.put(line, finishDraft(draft, this.#context), () => text)
    return true
  }

  /** Adds a line that is a record by itself: JSON or logfmt. */
  #addRecord(line: number, text: string): boolean {
    const parsed = text.startsWith('{') ? parseJson(text) : readLogfmt(text)
    if (!isRecord(parsed)) return false
    this.#emit()
    this.#decoder.decode(line, toWellFormed(parsed), () => text)
    return true
  }

  #addHeadless(line: number, text: string): void {
    if (GO_PANIC.test(text)) {
      this.#begin(line, null, { ...emptyDraft(), severity: 'CRITICAL', message: text })
      if (this.#pending !== null) this.#pending.isGo = true
    } else if (this.#continues(text)) this.#append(line, text)
    else {
      this.#begin(line, null, { ...emptyDraft(), message: text })
      if (this.#pending !== null) this.#pending.isGo = GOROUTINE.test(text)
    }
  }

  /** Whether a line belongs to the record before: they have the same process, or the same number in a log of npm. */
  #isDetail({ form, joinedBy }: TextHead): boolean {
    return form.isDetail === true && joinedBy !== '' && this.#pending?.head?.joinedBy === joinedBy
  }

  /** Adds a line of a container runtime; the program's text in it is read as a line of its own. */
  #addPiece(line: number, head: TextHead): void {
    const { stream } = head
    const before = this.#partial.get(stream)
    const first = before?.line ?? line
    const text = (before?.text ?? '') + head.draft.message
    if (head.isPartial && text.length < this.#context.maxMessageBytes) {
      this.#partial.set(stream, { line: first, text })
      return
    }
    this.#partial.delete(stream)
    if (this.#pending?.head?.stream === stream && this.#isOfStack(text)) this.#append(line, text)
    else this.#begin(first, head, this.#mergeInner(head.draft, text))
  }

  #mergeInner(draft: Draft, text: string): Draft {
    const inner = readInner(text, TEXT_FORMS, this.#context, this.#decoder)
    return inner === null ? { ...draft, message: text } : mergeDrafts(draft, inner)
  }

  #continues(text: string): boolean {
    const pending = this.#pending
    if (pending === null) return false
    if (this.#isOfStack(text) || pending.head?.form.follows?.test(text) === true) return true
    if (GOROUTINE.test(text)) return false
    // A line without a time may be of another program, so only indented lines below it certainly belong to it.
    if (this.#haveHeads && (pending.head === null || pending.head.draft.timestampMs !== null))
      return true
    return pending.head !== null && /^\s/.test(text)
  }

  /** Whether a line belongs to a stack trace of the record before. */
  #isOfStack(text: string): boolean {
    const pending = this.#pending
    if (pending === null) return false
    if (TRACE_LINE.test(text)) return true
    if (pending.isPython) return /^\s/.test(text) || TRACE_END.test(text)
    if (pending.isGo) return isGoLine(text)
    return GOROUTINE.test(text) && /panic|fatal|stack/i.test(pending.texts[0]?.slice(0, 2048) ?? '')
  }

  #begin(line: number, head: TextHead | null, draft: Draft): void {
    this.#emit()
    const { message } = draft
    const state = { isGo: false, isPython: PYTHON_TRACE.test(message) }
    this.#pending = { line, draft, head, texts: [message], chars: message.length, ...state }
  }

  #append(line: number, text: string): void {
    const pending = this.#pending
    if (pending === null) return
    const indent = pending.head?.indent ?? 0
    const shown = indent > 0 && text.slice(0, indent).trim() === '' ? text.slice(indent) : text
    // A UTF-16 unit is at most three bytes of UTF-8.
    if ((pending.chars + shown.length + 1) * 3 > this.#context.maxMessageBytes) {
      this.#begin(line, pending.head, { ...pending.draft, message: shown })
      if (this.#pending !== null) this.#pending.isGo = pending.isGo
      return
    }
    pending.isGo ||= GOROUTINE.test(text)
    pending.isPython = PYTHON_TRACE.test(text) || (pending.isPython && /^\s/.test(text))
    pending.texts.push(shown)
    pending.chars += shown.length + 1
  }

  #emit(): void {
    if (this.#pending === null) return
    const { line, draft, head, texts } = this.#pending
    this.#pending = null
    // Some records have their head on a line of its own.
    const message = texts[0] === '' ? texts.slice(1).join('\n').trimStart() : texts.join('\n')
    const timestampMs = draft.timestampMs ?? this.#lastMs
    this.#lastMs = timestampMs
    const isFailed =
      head?.form.follows !== undefined && texts.some((text) => text.startsWith('Error: '))
    const severity = draft.severity ?? (isFailed ? 'ERROR' : null)
    const whole = { ...draft, timestampMs, severity, message }
    this.#decoder.put(line, finishDraft(whole, this.#context), () => message)
  }
}
