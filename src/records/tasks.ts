import { randomUUID } from 'node:crypto'
import { Type, type Static } from '@sinclair/typebox'
import { AppError } from '../model/errors.js'
import { isAtLeast, type Role } from '../model/roles.js'
import { NewestFirst, type Records } from './newest-first.js'
import type { PageQuery } from './page.js'
import { checkReferences } from './references.js'
import { PrioritySchema } from '../model/schemas.js'

export const TASK_STATUSES = ['todo', 'in_progress', 'blocked', 'done'] as const

const OptionalText = Type.Union([Type.String(), Type.Null()])
const OptionalMs = Type.Union([Type.Integer(), Type.Null()])

/** A task as it is stored. */
export const TaskDoc = Type.Object({
  id: Type.String(),
  seq: Type.Integer(),
  createdAtMs: Type.Integer(),
  updatedAtMs: Type.Integer(),
  createdBy: Type.String(),
  title: Type.String(),
  description: Type.String(),
  status: Type.Union(TASK_STATUSES.map((status) => Type.Literal(status))),
  priority: PrioritySchema,
  assigneeId: OptionalText,
  incidentId: OptionalText,
  dueAtMs: OptionalMs,
  /** Set while the status is `done`. */
  completedAtMs: OptionalMs,
})
export type Task = Readonly<Static<typeof TaskDoc>>

/** The fields that a person sets. */
export type TaskFields = Pick<
  Task,
  'title' | 'description' | 'status' | 'priority' | 'assigneeId' | 'incidentId' | 'dueAtMs'
>

/** An empty list matches any value. */
interface TaskFilter {
  readonly statuses: readonly string[]
  readonly assigneeIds: readonly string[]
  readonly incidentIds: readonly string[]
}

interface Actor {
  readonly userId: string
  readonly role: Role
}

interface TaskDeps {
  readonly records: Records<Task>
  readonly hasUser: (id: string) => boolean
  readonly hasIncident: (id: string) => boolean
  readonly nowMs?: () => number
}

export const MAX_TASKS = 100_000

/**
 * The tasks, held in memory and written through. A viewer sees the tasks assigned to them, a
 * manager sees all; admins change them, and assignees change the status of their own. Every change
 * may reject with `dependency_unavailable`.
 */
export function createTasks({ records, hasUser, hasIncident, nowMs = Date.now }: TaskDeps) {
  const index = new NewestFirst(records)
  const checkFields = ({ assigneeId, incidentId }: Partial<TaskFields>): void =>
    checkReferences([
      { path: 'assignee_id', id: assigneeId, noun: 'user', exists: hasUser },
      { path: 'incident_id', id: incidentId, noun: 'incident', exists: hasIncident },
    ])
  return {
    page: (actor: Actor, query: PageQuery, filter: TaskFilter) =>
      index.page(query, (task) => maySee(actor, task) && matches(task, filter)),
    /** @throws AppError not_found, forbidden */
    get(actor: Actor, id: string): Task {
      const task = records.get(id)
      if (task === null) throw missing(id)
      if (!maySee(actor, task)) throw forbidden('this task is assigned to another user')
      return task
    },
    /** @throws AppError validation_error for a user or incident that does not exist; overloaded */
    async create({ userId: createdBy }: Actor, fields: TaskFields): Promise<Task> {
      checkFields(fields)
      const createdAtMs = nowMs()
      const seq = index.nextSeq(createdAtMs)
      const facts = { id: randomUUID(), seq, createdAtMs, updatedAtMs: createdAtMs, createdBy }
      const completedAtMs = fields.status === 'done' ? createdAtMs : null
      const task: Task = { ...facts, ...fields, completedAtMs }
      await records.update(task.id, () => task)
      return task
    },
    /** @throws AppError not_found, validation_error; forbidden, also when an assignee changes another field */
    async change(actor: Actor, id: string, fields: Partial<TaskFields>): Promise<Task> {
      const task = records.get(id)
      if (task === null) throw missing(id)
      refuseChange(actor, task, fields)
      checkFields(fields)
      const changed = await records.update(id, (current) => {
        if (current === null) return null
        // The task may have been assigned to another user meanwhile.
        refuseChange(actor, current, fields)
        return apply(current, fields, Math.max(nowMs(), current.updatedAtMs))
      })
      if (changed === null) throw missing(id)
      return changed
    },
    /** @throws AppError not_found */
    async remove(id: string): Promise<void> {
      if (!(await records.remove(id))) throw missing(id)
    },
    /** @returns the number of deleted tasks */
    clear: () => records.clear(),
  }
}

const maySee = ({ userId, role }: Actor, { assigneeId }: Task): boolean =>
  assigneeId === userId || isAtLeast(role, 'manager')

function refuseChange({ userId, role }: Actor, task: Task, fields: Partial<TaskFields>): void {
  if (isAtLeast(role, 'admin')) return
  if (task.assigneeId !== userId) throw forbidden('this task is assigned to another user')
  const isMove = Object.keys(fields).every((name) => name === 'status')
  if (!isMove) throw forbidden('an assignee may change the status only')
}

function apply(task: Task, fields: Partial<TaskFields>, atMs: number): Task {
  const next = { ...task, ...fields }
  const completedAtMs = next.status === 'done' ? (task.completedAtMs ?? atMs) : null
  return { ...next, completedAtMs, updatedAtMs: atMs }
}

const matches = (task: Task, { statuses, assigneeIds, incidentIds }: TaskFilter): boolean =>
  isAmong(statuses, task.status) &&
  isAmong(assigneeIds, task.assigneeId) &&
  isAmong(incidentIds, task.incidentId)

const isAmong = (wanted: readonly string[], value: string | null): boolean =>
  wanted.length === 0 || (value !== null && wanted.includes(value))

const forbidden = (message: string): AppError => new AppError('forbidden', message)

const missing = (id: string): AppError =>
  new AppError('not_found', 'there is no such task', { details: { task_id: id } })
