import type { DecodeContext } from '../../model/event.js'
import { type Draft, emptyDraft, finishDraft } from './draft.js'
import { isRecord, toWellFormed } from './json-value.js'
import { readLogfmt } from './logfmt.js'
import { parseJson } from './json-text.js'
import { mergeDrafts, type RecordDecoder } from './record.js'
import { readHead, type TextHead } from './text-line.js'

/** Lines that are sampled to find out whether the records of a file begin with a head. */
const SAMPLE_LINES = 2000

/** Lines of a stack trace, which never begin a record. */
const TRACE_LINE =
  /^(?:\s+at |\s+File "|\s*\.\.\. \d+ (?:more|common)|\s*Caused by: |\s*Suppressed: |Traceback \()/

/**
 * Decodes a text file line by line: the forms of `text-forms.ts`, logfmt, and JSON lines among
 * them. Blank lines are skipped.
 *
 * One line is one record, with these exceptions. Parts of a line that a container runtime split are joined. A line of a
 * stack trace, and an indented line below a line with a head, belong to the record before. In a file where at least
 * half of the lines that are not indented have a head, any line without one belongs to the record before. A record
 * beyond the message limit is split into records with the same head.
 */
export function decodeText(text: string, context: DecodeContext, decoder: RecordDecoder): void {
  const lines = text.split('\n')
  const assembler = new RecordAssembler(context, decoder, haveHeads(lines, context.nowMs))
  for (const [i, line] of lines.entries()) {
    assembler.add(i + 1, line.endsWith('\r') ? line.slice(0, -1) : line)
  }
  assembler.flush()
}

function haveHeads(lines: readonly string[], nowMs: number): boolean {
  let flush = 0
  let heads = 0
  for (const line of lines.slice(0, SAMPLE_LINES)) {
    if (line.trim() === '' || /^[\s}\])]/.test(line)) continue
    flush += 1
    if (readHead(line, nowMs) !== null) heads += 1
  }
  return heads * 2 >= flush && heads > 0
}

interface Pending {
  readonly line: number
  readonly draft: Draft
  readonly head: TextHead | null
  readonly texts: string[]
  chars: number
}

/** Joins the lines of one file into records. */
class RecordAssembler {
  readonly #context: DecodeContext
  readonly #decoder: RecordDecoder
  readonly #haveHeads: boolean
  /** By stream: the first parts of a line that the container runtime split. */
  readonly #partial = new Map<string, { readonly line: number; text: string }>()
  #pending: Pending | null = null

  constructor(context: DecodeContext, decoder: RecordDecoder, areHeaded: boolean) {
    this.#context = context
    this.#decoder = decoder
    this.#haveHeads = areHeaded
  }

  add(line: number, text: string): void {
    if (text.trim() === '') return
    if (this.#addRecord(line, text)) return
    const head = readHead(text, this.#context.nowMs)
    if (head !== null && head.stream !== '') this.#addPiece(line, head)
    else if (head !== null) this.#begin(line, head, head.draft)
    else if (this.#continues(text)) this.#append(line, text)
    else this.#begin(line, null, { ...emptyDraft(), message: text })
  }

  flush(): void {
    for (const [stream, { line, text }] of this.#partial) {
      this.#begin(line, null, { ...emptyDraft(), message: text, tags: { stream } })
    }
    this.#partial.clear()
    this.#emit()
  }

  /** Adds a line that is a record by itself: JSON or logfmt. */
  #addRecord(line: number, text: string): boolean {
    const parsed = text.startsWith('{') ? parseJson(text) : readLogfmt(text)
    if (!isRecord(parsed)) return false
    this.#emit()
    this.#decoder.decode(line, toWellFormed(parsed), () => text)
    return true
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
    if (this.#pending?.head?.stream === stream && TRACE_LINE.test(text)) this.#append(line, text)
    else this.#begin(first, head, this.#mergeInner(head.draft, text))
  }

  #mergeInner(draft: Draft, text: string): Draft {
    const inner = this.#readInner(text)
    return inner === null ? { ...draft, message: text } : mergeDrafts(draft, inner)
  }

  #readInner(text: string): Draft | null {
    if (text.startsWith('{')) return this.#decoder.readWrapped(text)
    return readHead(text, this.#context.nowMs)?.draft ?? null
  }

  #continues(text: string): boolean {
    if (this.#pending === null) return false
    if (this.#haveHeads || TRACE_LINE.test(text)) return true
    return this.#pending.head !== null && /^\s/.test(text)
  }

  #begin(line: number, head: TextHead | null, draft: Draft): void {
    this.#emit()
    this.#pending = { line, draft, head, texts: [draft.message], chars: draft.message.length }
  }

  #append(line: number, text: string): void {
    const pending = this.#pending
    if (pending === null) return
    const indent = pending.head?.indent ?? 0
    const shown = indent > 0 && text.slice(0, indent).trim() === '' ? text.slice(indent) : text
    // A UTF-16 unit is at most three bytes of UTF-8.
    if ((pending.chars + shown.length + 1) * 3 > this.#context.maxMessageBytes) {
      this.#begin(line, pending.head, { ...pending.draft, message: shown })
      return
    }
    pending.texts.push(shown)
    pending.chars += shown.length + 1
  }

  #emit(): void {
    if (this.#pending === null) return
    const { line, draft, texts } = this.#pending
    this.#pending = null
    const message = texts.join('\n')
    this.#decoder.put(line, finishDraft({ ...draft, message }, this.#context), () => message)
  }
}
