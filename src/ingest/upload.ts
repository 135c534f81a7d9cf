import type { Config } from '../config.js'
import type { BodyResult } from './block.js'
import type { Pipeline } from './pipeline.js'
import type { Submission } from './submission.js'

/** Limit of rows in an uploaded file. */
const UPLOAD_ROWS = 200_000

export interface UploadedFile {
  readonly format: 'csv' | 'json' | 'txt'
  readonly bytes: Uint8Array
  readonly source: string
  readonly applicationId: string | null
  readonly timeZone?: string | undefined
}

/** Makes the submission of an uploaded file, whose dead letters have no raw text. */
const toSubmission = ({
  format,
  bytes,
  source,
  applicationId,
  timeZone,
}: UploadedFile): Submission => ({
  owner: 'uploads',
  format,
  bytes,
  coding: 'identity',
  events: null,
  protocol: 'upload',
  source,
  keyId: '',
  defaultSource: source,
  allowedSources: null,
  keepRaw: false,
  maxRows: UPLOAD_ROWS,
  ...(timeZone === undefined ? {} : { timeZone }),
  replays: null,
  register: { type: 'file', connector: 'custom', applicationId },
})

/** Parses uploaded files and ingests their rows. */
export const createUpload =
  ({ role }: Config, pipeline: Pipeline) =>
  async (file: UploadedFile): Promise<BodyResult> => {
    const result = await pipeline.submit(toSubmission(file))
    // The disk of an instance with the role `api` may be removed together with it.
    if (role === 'api') await pipeline.settle()
    return result
  }
