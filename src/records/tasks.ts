import { randomUUID } from 'node:crypto'
import { Type, type Static } from '@sinclair/typebox'
import { AppError } from '../model/errors.js'
import type { Priority } from '../model/event.js'
import { isAtLeast, type Role } from '../model/roles.js'
import type { Page } from './keyset.js'
import { NewestFirst, type PageQuery } from './newest-first.js'
import type { Records } from './records.js'
import { createReferences, type ReferenceParts } from './references.js'
import { PrioritySchema } from '../model/schemas.js'

export const TASK_STATUSES = ['todo', 'in_progress', 'blocked', 'done'] as const
export type TaskStatus = (typeof TASK_STATUSES)[number]

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
  /** set while the status is `done` */
  completedAtMs: OptionalMs,
})
export type Task = Readonly<Static<typeof TaskDoc>>

/** What a person sets. */
export interface TaskFields {
  readonly title: string
  readonly description: string
  readonly status: TaskStatus
  readonly priority: Priority
  readonly assigneeId: string | null
  readonly incidentId: string | null
  readonly dueAtMs: number | null
}

interface TaskFilter {
  /** each empty = any */
  readonly statuses: readonly string[]
  readonly assigneeIds: readonly string[]
  readonly incidentIds: readonly string[]
}

interface Actor {
  readonly userId: string
  readonly role: Role
}

export interface TaskParts extends Pick<ReferenceParts, 'hasUser' | 'hasIncident'> {
  readonly records: Records<Task>
  readonly nowMs?: () => number
  readonly maxTasks?: number
}

/**
 * Tasks in memory, written through. A viewer sees those assigned to them, a manager all; admins
 * change them, and assignees move their own. Every change may reject with dependency_unavailable.
 */
export interface Tasks {
  page(actor: Actor, query: PageQuery, filter: TaskFilter): Page<Task>
  /** @throws AppError not_found, forbidden */
  get(actor: Actor, id: string): Task
  /** @throws AppError validation_error for a user or incident that does not exist; overloaded */
  create(actor: Actor, fields: TaskFields): Promise<Task>
  /** @throws AppError not_found, validation_error; forbidden, also for an assignee's other fields */
  change(actor: Actor, id: string, fields: Partial<TaskFields>): Promise<Task>
  /** @throws AppError not_found */
  remove(id: string): Promise<void>
  clear(): Promise<number>
}

const MAX_TASKS = 100_000

export function createTasks(parts: TaskParts): Tasks {
  const { records, nowMs = Date.now, maxTasks = MAX_TASKS } = parts
  const index = new NewestFirst(records)
  const references = createReferences(parts)
  return {
    page: (actor, query, filter) =>
      index.page(query, (task) => maySee(actor, task) && matches(task, filter)),
    get(actor, id) {
      const task = records.get(id)
      if (task === null) throw missing(id)
      if (!maySee(actor, task)) throw forbidden('this task is assigned to somebody else')
      return task
    },
    async create({ userId: createdBy }, fields) {
      references.check(fields)
      if (records.size >= maxTasks) throw tooMany(maxTasks)
      const createdAtMs = nowMs()
      const seq = index.nextSeq(createdAtMs)
      const moments = { createdAtMs, updatedAtMs: createdAtMs }
      const completedAtMs = fields.status === 'done' ? createdAtMs : null
      const task: Task = { id: randomUUID(), seq, ...moments, createdBy, ...fields, completedAtMs }
      await records.update(task.id, () => task)
      return task
    },
    async change(actor, id, fields) {
      const task = records.get(id)
      if (task === null) throw missing(id)
      refuseChange(actor, task, fields)
      references.check(fields)
      const changed = await records.update(id, (current) => {
        if (current === null) return null
        // it may have been assigned to somebody else meanwhile
        refuseChange(actor, current, fields)
        return apply(current, fields, Math.max(nowMs(), current.updatedAtMs))
      })
      if (changed === null) throw missing(id)
      return changed
    },
    async remove(id) {
      if (!(await records.remove(id))) throw missing(id)
    },
    clear: () => records.clear(),
  }
}

const maySee = ({ userId, role }: Actor, { assigneeId }: Task): boolean =>
  assigneeId === userId || isAtLeast(role, 'manager')

function refuseChange({ userId, role }: Actor, task: Task, fields: Partial<TaskFields>): void {
  if (isAtLeast(role, 'admin')) return
  if (task.assigneeId !== userId) throw forbidden('this task is assigned to somebody else')
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

const tooMany = (max: number): AppError =>
  new AppError('overloaded', `there are ${max} tasks already; delete some first`)
