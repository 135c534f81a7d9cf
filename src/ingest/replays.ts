import { AppError } from '../model/errors.js'
import type { ReplayLine, ReplayOutcome } from '../records/replay.js'
import type { Pipeline } from './pipeline.js'
import { hasTexts, toReplayBody } from './protocols/table.js'
import { DEFAULT_SOURCE, PUSHED, type SenderKey, type Submission } from './submission.js'

interface ReplayDeps {
  readonly pipeline: Pick<Pipeline, 'submit' | 'settle'>
  /** The ingest key with this id; null when there is none. */
  readonly findKey: (id: string) => Omit<SenderKey, 'id'> | null
}

/** Ingests dead letters again, each as a body of its own. */
export const createResubmission = ({ pipeline, findKey }: ReplayDeps) => ({
  hasTexts,
  settle: () => pipeline.settle(),
  resubmit: (lines: readonly ReplayLine[]): Promise<readonly ReplayOutcome[]> =>
    Promise.all(
      lines.map((line) => resubmit(line, replayScope(line, findKey(line.keyId)), pipeline)),
    ),
})

/** The rights of a replayed dead letter. */
type ReplayScope = Pick<Submission, 'keyId' | 'defaultSource' | 'allowedSources' | 'register'>

/**
 * The rights are those that the sender's key has now, because a replay must not store what the key
 * may not write. Without a key, or when it was deleted, the record may be of the source that the
 * dead letter names.
 */
function replayScope(
  { keyId, source }: ReplayLine,
  key: Omit<SenderKey, 'id'> | null,
): ReplayScope {
  // The dead letter of a record without a source has that of its request.
  const defaultSource = source === '' ? (key?.defaultSource ?? DEFAULT_SOURCE) : source
  return key === null
    ? { keyId, defaultSource, allowedSources: [source], register: PUSHED }
    : {
        keyId,
        defaultSource,
        allowedSources: key.sources,
        register: key.autoRegister ? PUSHED : null,
      }
}

/** Replays one dead letter. It is kept when its sender may not write the source. */
async function resubmit(
  { id, line, protocol }: ReplayLine,
  scope: ReplayScope,
  pipeline: ReplayDeps['pipeline'],
): Promise<ReplayOutcome> {
  const submission: Submission = {
    owner: 'replays',
    ...toReplayBody(line, protocol),
    coding: 'identity',
    events: null,
    // A record that is rejected again can be replayed again.
    protocol: protocol ?? 'replay',
    source: null,
    ...scope,
    keepRaw: true,
    maxRows: 1,
    replays: id,
  }
  try {
    const result = await pipeline.submit(submission)
    if (result.accepted > 0) return 'stored'
    return result.rejected > 0 ? 'rejected' : 'kept'
  } catch (error) {
    if (error instanceof AppError && error.code === 'source_not_allowed') return 'kept'
    throw error
  }
}
