import { existsSync, readFileSync, writeFileSync } from 'node:fs'

/** Kept inputs of one target: a line each, a JSON string whose characters are the bytes. */
const fileOf = (target: string): URL =>
  // the built tests read, and keep, what is beside the sources
  new URL(`../../../test/fixtures/corpus/${target}.jsonl`, import.meta.url)

export function readCorpus(target: string): Buffer[] {
  const file = fileOf(target)
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.filter((line) => line !== '').map((line) => Buffer.from(JSON.parse(line), 'latin1'))
}

export function writeCorpus(target: string, inputs: readonly Uint8Array[]): void {
  const lines = inputs.map((input) =>
    escaped(JSON.stringify(Buffer.from(input).toString('latin1'))),
  )
  writeFileSync(fileOf(target), `${lines.join('\n')}\n`)
}

/** Only ASCII, so that the file is text for every program. */
const escaped = (json: string): string =>
  json.replaceAll(
    /[\u007f-\u00ff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
