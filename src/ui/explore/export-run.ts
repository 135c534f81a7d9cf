import { ask, isAbort, messageOf } from '../lib/api.js'
import { counted } from '../lib/format.js'
import { notice } from '../shell/notice.js'
import { exporting } from '../shell/open-dialogs.js'
import { exportPath, type ExportFormat, type Run } from './answers.js'

/** The last line of a complete file. */
const ENDING = /\{"complete":true,"rows":(\d+)\}\s*$/
const ENDING_BYTES = 80
const MOST_PARTS = 64
const LINE_FEED = 10

/**
 * Saves all events of a query as a file, which the browser stores outside of the page's memory.
 *
 * @param total the number of events, null when it is not known
 */
export async function exportRun(
  run: Run,
  format: ExportFormat,
  total: number | null,
): Promise<void> {
  if (exporting.value !== null) {
    notice('Another export is under way.', 'problem')
    return
  }
  const controller = new AbortController()
  const cancel = (): void => controller.abort()
  const show = (rows: number, bytes: number): void => {
    exporting.value = { rows, bytes, total, cancel }
  }
  show(0, 0)
  try {
    const reply = await ask(exportPath(run, format), { signal: controller.signal })
    const { file, ending } = await read(reply, show)
    const rows = ENDING.exec(ending)?.[1]
    if (rows === undefined)
      notice('The export was interrupted. Nothing is saved; try again.', 'problem')
    else {
      save(file, `events.${format}`)
      notice(`Saved: ${counted(Number(rows), 'event')}, which is all.`)
    }
  } catch (error) {
    if (isAbort(error)) notice('The export is cancelled. Nothing is saved.')
    else notice(messageOf(error), 'problem')
  } finally {
    exporting.value = null
  }
}

async function read(reply: Response, show: (rows: number, bytes: number) => void) {
  let parts: Blob[] = []
  let [rows, bytes, ending] = [0, 0, '']
  const reader = reply.body?.getReader()
  for (;;) {
    const { value } = (await reader?.read()) ?? {}
    if (value === undefined) return { file: new Blob(parts), ending }
    parts = [...parts, new Blob([value])]
    if (parts.length > MOST_PARTS) parts = [new Blob(parts)]
    bytes += value.length
    for (const byte of value) if (byte === LINE_FEED) rows++
    ending = (ending + new TextDecoder().decode(value.slice(-ENDING_BYTES))).slice(-ENDING_BYTES)
    show(rows, bytes)
  }
}

function save(file: Blob, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(file)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}
