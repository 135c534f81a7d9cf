import { useEffect, useState } from 'preact/hooks'

import { call, messageOf } from '../lib/api.js'
import { counted } from '../lib/format.js'
import { Icon } from '../lib/icon.js'
import { clauseLine } from '../lib/query-edit.js'
import { addressOf } from '../lib/router.js'
import { formTexts } from '../shell/form.js'

interface UploadReply {
  readonly events_processed: number
  readonly source_name: string
  readonly detail: { readonly errors: number }
  readonly time_span?: { readonly from: string; readonly to: string }
}

const TYPES: ReadonlyMap<string | undefined, 'csv' | 'json' | 'txt'> = new Map([
  ['csv', 'csv'],
  ['tsv', 'csv'],
  ['json', 'json'],
  ['ndjson', 'json'],
  ['jsonl', 'json'],
])
const typeOf = ({ name }: File): string | undefined =>
  TYPES.get(name.split('.').at(-1)?.toLowerCase())
const MOST_BYTES = 10_000_000

const stemOf = (name: string): string =>
  name
    .replace(/\.[^.]*$/, '')
    .replaceAll(/[^\w.-]+/g, '-')
    .slice(0, 60)

/** The address in Explore of a file's events, which may be years old. */
function eventsOf({ source_name: source, time_span: span }: UploadReply): string {
  // A range must end after it begins, even for a single event.
  const range =
    span === undefined
      ? { from: 'now-30d', to: 'now' }
      : { from: span.from, to: new Date(Date.parse(span.to) + 1_000).toISOString() }
  return addressOf('/explore', new URLSearchParams({ q: clauseLine('source', source), ...range }))
}

/** Why files cannot be uploaded; '' when they can. */
function problemOf(chosen: File, count: number): string {
  if (chosen.size > MOST_BYTES)
    return 'A file may have 10 MB at most; send a larger one to the collector.'
  return count > 1 ? `Files are uploaded one at a time: ${chosen.name} is the first.` : ''
}

/**
 * Uploads a file that is chosen or dropped. It may be dropped anywhere on the screen, because the browser would leave the page
 * for a file that misses a smaller target.
 */
export function Upload() {
  const [file, setFile] = useState<File | null>(null)
  const [isOver, setOver] = useState(false)
  const [isBusy, setBusy] = useState(false)
  const [problem, setProblem] = useState('')
  const [done, setDone] = useState<UploadReply | null>(null)
  const choose = (files: FileList | null | undefined): void => {
    const chosen = files?.[0]
    if (chosen === undefined) return
    setDone(null)
    setProblem(problemOf(chosen, files?.length ?? 1))
    setFile(chosen.size > MOST_BYTES ? null : chosen)
  }
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    if (file === null) return
    const text = formTexts(event.currentTarget)
    const form = new FormData()
    form.set('file_type', text('type'))
    form.set('source_name', text('source'))
    form.set('file', file)
    setBusy(true)
    call<UploadReply>('/api/sources/ephemeral', { method: 'POST', form })
      .then(
        (reply) => {
          setDone(reply)
          setFile(null)
          setProblem('')
        },
        (error: unknown) => setProblem(messageOf(error)),
      )
      .finally(() => setBusy(false))
  }
  useEffect(() => {
    const drag = (event: DragEvent): void => {
      if (event.dataTransfer?.types.includes('Files') !== true) return
      if (event.type !== 'dragleave') event.preventDefault()
      setOver(event.type === 'dragover')
      if (event.type === 'drop') choose(event.dataTransfer.files)
    }
    const controller = new AbortController()
    for (const type of ['dragover', 'dragleave', 'drop'] as const)
      document.addEventListener(type, drag, controller)
    return () => controller.abort()
  }, [])
  return (
    <section class={`upload ${isOver ? 'over' : ''}`}>
      <h2>Or upload a file</h2>
      <label class="button">
        <Icon name="upload" size={14} /> Choose a file
        <input
          type="file"
          class="vh"
          onChange={({ currentTarget }) => {
            choose(currentTarget.files)
            currentTarget.value = ''
          }}
        />
      </label>
      <span class="note">or drop it here: text, JSON or CSV, uncompressed, 10 MB at most</span>
      {file !== null && (
        <form class="line" key={file.name} onSubmit={submit}>
          <strong>{file.name}</strong>
          <label>
            as{' '}
            <select name="type">
              <option value="txt">text</option>
              <option value="json" selected={typeOf(file) === 'json'}>
                JSON
              </option>
              <option value="csv" selected={typeOf(file) === 'csv'}>
                CSV
              </option>
            </select>
          </label>
          <label>
            of the source <input name="source" required defaultValue={stemOf(file.name)} />
          </label>
          <button class="primary" disabled={isBusy}>
            {isBusy ? 'Uploading …' : 'Upload'}
          </button>
        </form>
      )}
      {problem !== '' && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {done !== null && (
        <p class="received some" role="status">
          <Icon name="check" />
          <span>
            {counted(done.events_processed, 'event')}
            {done.detail.errors > 0 && `, ${counted(done.detail.errors, 'row')} not readable`}.{' '}
            <a href={eventsOf(done)}>Look at them</a>
          </span>
        </p>
      )}
    </section>
  )
}
