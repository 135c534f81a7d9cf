import type { Pipeline, Submission } from './pipeline.js'

/** Rows of an uploaded file. */
const UPLOAD_ROWS = 200_000

export interface UploadedFile {
  readonly format: 'csv' | 'json' | 'txt'
  readonly bytes: Uint8Array
  readonly source: string
  readonly applicationId: string | null
}

/** An uploaded file as the pipeline takes it. What is refused of it is never stored. */
export const uploadSubmission = ({
  format,
  bytes,
  source,
  applicationId,
}: UploadedFile): Submission => ({
  format,
  bytes,
  events: null,
  protocol: 'upload',
  source,
  allowedSources: null,
  keepRaw: false,
  maxRows: UPLOAD_ROWS,
  replays: null,
  register: { type: 'file', connector: 'custom', applicationId },
})

/** One dead letter as a body of its own. Its source is registered when it is unknown. */
export async function resubmit(
  { id, line }: { readonly id: number; readonly line: string },
  pipeline: Pick<Pipeline, 'submit'>,
): Promise<'stored' | 'rejected' | 'kept'> {
  const result = await pipeline.submit({
    format: 'ingest',
    bytes: new TextEncoder().encode(line),
    events: null,
    protocol: 'replay',
    source: null,
    allowedSources: null,
    keepRaw: true,
    maxRows: 1,
    replays: id,
    register: { type: 'push', connector: 'custom', applicationId: null },
  })
  if (result.accepted > 0) return 'stored'
  return result.rejected > 0 ? 'rejected' : 'kept'
}
