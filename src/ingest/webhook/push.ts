import {
  invalidPayload,
  isFields,
  missingField,
  textAt,
  wordAt,
  type Fields,
  type ScmEvent,
} from './payload.js'

/** Platforms list at most 20 to 2,048 commits; each one listed is an event of the same delivery. */
const MAX_COMMITS = 10_000

/** Maps a push to one event per commit; a push that lists none is one event about the branch. */
export function pushEvents(payload: Fields): readonly ScmEvent[] {
  const push = pushOf(payload)
  const listed: unknown = payload['commits']
  const commits = Array.isArray(listed) ? listed.filter(isFields) : []
  if (commits.length === 0) return [branchEvent(push)]
  if (commits.length > MAX_COMMITS) {
    throw invalidPayload('commits', `${commits.length} commits exceed ${MAX_COMMITS} a delivery`)
  }
  return commits.map((commit, index) => commitEvent(push, commit, index))
}

export function tagPushEvents(payload: Fields): readonly ScmEvent[] {
  const { name, identity, deleted } = pushOf(payload)
  return [
    {
      ...bare,
      message: `Tag ${name} ${deleted ? 'deleted' : 'pushed'}`,
      summary: textAt(payload, 'message'),
      identity,
    },
  ]
}

interface Push {
  /** Branch or tag, without `refs/…/`. */
  readonly name: string
  readonly created: boolean
  readonly deleted: boolean
  readonly identity: readonly string[]
}

const bare = { severity: 'INFO', summary: '', url: '', tags: {}, times: [] } as const

function pushOf(payload: Fields): Push {
  const ref = wordAt(payload, 'ref')
  if (ref === '') throw missingField('ref')
  const before = wordAt(payload, 'before')
  const after = wordAt(payload, 'after')
  return {
    name: ref.replace(/^refs\/(heads|tags)\//, ''),
    created: isNoCommit(before),
    deleted: isNoCommit(after),
    identity: [ref, before, after],
  }
}

/** Whether a hash is all zeros, which stands for "no commit": the branch or tag is new or deleted. */
const isNoCommit = (sha: string): boolean => /^0+$/.test(sha)

function branchEvent({ name, created, deleted, identity }: Push): ScmEvent {
  if (deleted) return { ...bare, message: `Branch ${name} deleted`, identity }
  if (created) return { ...bare, message: `Branch ${name} created`, identity }
  return { ...bare, message: `Push to ${name} without commits`, identity }
}

function commitEvent(push: Push, commit: Fields, index: number): ScmEvent {
  const id = wordAt(commit, 'id')
  const whole = textAt(commit, 'message') || textAt(commit, 'title')
  return {
    ...bare,
    message: firstLine(whole) || `Commit ${id || index + 1} on ${push.name}`,
    summary: whole,
    url: wordAt(commit, 'url'),
    times: [commit['timestamp']],
    identity: [...push.identity, id, id === '' ? index : ''],
  }
}

/** Returns the first line that is not blank, verbatim, without its line end. */
function firstLine(text: string): string {
  const inside = text.search(/\S/)
  if (inside === -1) return ''
  const before = text.slice(0, inside)
  const start = Math.max(before.lastIndexOf('\n'), before.lastIndexOf('\r')) + 1
  const length = text.slice(inside).search(/[\r\n]/)
  return text.slice(start, length === -1 ? undefined : inside + length)
}
