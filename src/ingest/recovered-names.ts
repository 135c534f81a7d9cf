import { readBlock, type NativeBlock } from '../clickhouse/native-reader.js'
import { wholeMessage } from '../model/stored-message.js'
import { TemplateMiner } from '../templates/miner.js'
import type { LogRecord, Command, TemplateRow } from '../wal/record.js'
import type { Sources } from '../records/sources.js'
import type { TemplateStore } from '../templates/store.js'

/** The template id of rows beyond the miner's limits. */
const NONE = '0'.repeat(16)

/**
 * The sources and templates of the rows in a damaged WAL. The records that registered them may be
 * lost, so they are registered and saved again: every stored row must have a registered source and
 * a known template.
 */
export class RecoveredNames {
  /** A message of each template, by source and template id. */
  readonly #messages = new Map<string, Map<string, string>>()

  /** Called for each record in order, because a deletion removes the names of earlier rows. */
  add({ landing, command }: Pick<LogRecord, 'landing' | 'command'>): void {
    if (command !== null) this.#forget(command)
    const block = landing === null ? null : readBlock(landing)
    for (let row = 0; row < (block?.rows ?? 0); row++) if (block !== null) this.#note(block, row)
  }

  /** Registers the unknown sources and saves the unknown templates. */
  async complete(sources: Sources, store: TemplateStore): Promise<void> {
    for (const name of this.#messages.keys())
      if (sources.get(name) === undefined) await sources.registerAgain(name)
    const known = new Set((await store.all()).map(({ source, id }) => `${id} ${source}`))
    const found = [...this.#messages].flatMap(([source, messages]) =>
      [...messages]
        .filter(([id]) => !known.has(`${id} ${source}`))
        .map(([id, message]) => templateOf(source, id, message)),
    )
    if (found.length > 0) await store.save(found)
  }

  #note(block: NativeBlock, row: number): void {
    const source = block.text('source', row)
    const id = block.hex('template_id', row)
    const variables = block.text('variables', row)
    if (source === null || id === null || variables === null) return
    const messages = this.#messages.get(source) ?? new Map<string, string>()
    this.#messages.set(source, messages)
    if (id !== NONE && !messages.has(id))
      messages.set(id, wholeMessage(block.text('constant_text', row) ?? '', variables))
  }

  #forget(command: Command): void {
    const change = command.kind === 'shared' ? command.change : command
    if (change.kind === 'clear-all') this.#messages.clear()
    if (change.kind === 'delete-sources')
      for (const source of change.sources) this.#messages.delete(source)
  }
}

/** Creates a template from one message; later messages generalise it. */
function templateOf(source: string, id: string, message: string): TemplateRow {
  const miner = new TemplateMiner()
  const text = miner.textOf(miner.resolve(source, Buffer.from(message)))
  return { source, id, redirectId: '', text, born: Date.now() * 1000 }
}
