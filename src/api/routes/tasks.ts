import { Type, type Static } from '@sinclair/typebox'
import { ListParameter, PageParameters, PageSchema } from '../schemas/page.js'
import { parseQueryTime } from '../query-time.js'
import { route } from '../route.js'
import { Timestamp } from '../schemas/event.js'
import { PrioritySchema } from '../../model/schemas.js'
import {
  Description,
  GivenTime,
  RECORD_BYTES,
  Title,
  toIso,
  toIsoOrNull,
} from '../schemas/record.js'
import { Uuid } from '../schemas/source.js'
import { TASK_STATUSES, type Task, type TaskFields } from '../../records/tasks.js'

const StatusSchema = Type.Union(TASK_STATUSES.map((status) => Type.Literal(status)))
const OptionalTimestamp = Type.Union([Timestamp, Type.Null()])
const IdParams = Type.Object({ id: Uuid })

const TaskSchema = Type.Object(
  {
    id: Uuid,
    title: Type.String(),
    description: Type.String(),
    status: StatusSchema,
    priority: PrioritySchema,
    assignee_id: Type.Union([Type.String(), Type.Null()]),
    incident_id: Type.Union([Type.String(), Type.Null()]),
    due_at: OptionalTimestamp,
    created_by: Type.String({ description: 'id of a user' }),
    created_at: Timestamp,
    updated_at: Timestamp,
    completed_at: Type.Union([Timestamp, Type.Null()], {
      description: 'set while the status is `done`',
    }),
  },
  { title: 'Task' },
)

const NewTask = Type.Object({
  title: Title,
  description: Type.Optional(Description),
  status: Type.Optional(StatusSchema),
  priority: Type.Optional(PrioritySchema),
  assignee_id: Type.Optional(Type.Union([Uuid, Type.Null()])),
  incident_id: Type.Optional(Type.Union([Uuid, Type.Null()])),
  due_at: Type.Optional(Type.Union([GivenTime, Type.Null()])),
})
const TaskPatch = Type.Partial(NewTask)

const toView = (task: Task): Static<typeof TaskSchema> => ({
  id: task.id,
  title: task.title,
  description: task.description,
  status: task.status,
  priority: task.priority,
  assignee_id: task.assigneeId,
  incident_id: task.incidentId,
  due_at: toIsoOrNull(task.dueAtMs),
  created_by: task.createdBy,
  created_at: toIso(task.createdAtMs),
  updated_at: toIso(task.updatedAtMs),
  completed_at: toIsoOrNull(task.completedAtMs),
})

const parseDue = (text: string | null): number | null =>
  text === null ? null : parseQueryTime(text, 'due_at', 'body')

const toFields = (body: Static<typeof NewTask>): TaskFields => ({
  title: body.title,
  description: body.description ?? '',
  status: body.status ?? 'todo',
  priority: body.priority ?? 'P3',
  assigneeId: body.assignee_id ?? null,
  incidentId: body.incident_id ?? null,
  dueAtMs: parseDue(body.due_at ?? null),
})

const toPatch = (body: Static<typeof TaskPatch>): Partial<TaskFields> => ({
  ...(body.title !== undefined && { title: body.title }),
  ...(body.description !== undefined && { description: body.description }),
  ...(body.status !== undefined && { status: body.status }),
  ...(body.priority !== undefined && { priority: body.priority }),
  ...(body.assignee_id !== undefined && { assigneeId: body.assignee_id }),
  ...(body.incident_id !== undefined && { incidentId: body.incident_id }),
  ...(body.due_at !== undefined && { dueAtMs: parseDue(body.due_at) }),
})

const reads = [
  route({
    id: 'listTasks',
    method: 'get',
    path: '/api/tasks',
    summary: 'Tasks, newest first',
    description: 'A viewer sees the tasks assigned to them, a manager all.',
    role: 'viewer',
    query: Type.Object({
      status: ListParameter(StatusSchema),
      assignee_id: ListParameter(Uuid),
      incident_id: ListParameter(Uuid),
      ...PageParameters,
    }),
    reply: PageSchema(TaskSchema),
    errors: ['invalid_cursor'],
    handle: ({ query, principal }, { tasks, cursorKey }) => {
      const { limit, cursor } = query
      const filter = {
        statuses: query.status ?? [],
        assigneeIds: query.assignee_id ?? [],
        incidentIds: query.incident_id ?? [],
      }
      const filters = { list: 'tasks', ...filter }
      const page = tasks.page(principal, { limit, cursor, filters, cursorKey }, filter)
      return { ...page, items: page.items.map(toView) }
    },
  }),
  route({
    id: 'getTask',
    method: 'get',
    path: '/api/tasks/{id}',
    summary: 'One task',
    description: 'A viewer may read the tasks assigned to them, a manager all.',
    role: 'viewer',
    params: IdParams,
    reply: TaskSchema,
    errors: ['not_found'],
    handle: ({ params, principal }, { tasks }) => toView(tasks.get(principal, params.id)),
  }),
]

const edits = [
  route({
    id: 'createTask',
    method: 'post',
    path: '/api/tasks',
    summary: 'Creates a task',
    description:
      'Defaults: status `todo`, priority `P3`. `assignee_id` and `incident_id` must exist. At most ' +
      '100,000 tasks.',
    role: 'admin',
    bodyBytes: RECORD_BYTES,
    body: NewTask,
    reply: TaskSchema,
    status: 201,
    errors: ['overloaded', 'dependency_unavailable'],
    handle: async ({ body, principal }, { tasks }) =>
      toView(await tasks.create(principal, toFields(body))),
  }),
  route({
    id: 'changeTask',
    method: 'patch',
    path: '/api/tasks/{id}',
    summary: 'Changes the fields of a task that the body names',
    description: 'An admin changes any field, an assignee the `status` of their own tasks.',
    role: 'viewer',
    bodyBytes: RECORD_BYTES,
    params: IdParams,
    body: TaskPatch,
    reply: TaskSchema,
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ params, body, principal }, { tasks }) =>
      toView(await tasks.change(principal, params.id, toPatch(body))),
  }),
  route({
    id: 'deleteTask',
    method: 'delete',
    path: '/api/tasks/{id}',
    summary: 'Deletes a task',
    role: 'admin',
    params: IdParams,
    reply: Type.Null(),
    status: 204,
    errors: ['not_found', 'dependency_unavailable'],
    handle: async ({ params }, { tasks }) => {
      await tasks.remove(params.id)
      return null
    },
  }),
]

export const taskRoutes = [...reads, ...edits]
