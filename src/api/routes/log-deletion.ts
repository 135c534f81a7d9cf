import { Type } from '@sinclair/typebox'

import { EVENT_PARAMETERS, answered, invalid, readEventQuestion } from '../event-question.js'
import { route } from '../route.js'

const Count = Type.Integer({ minimum: 0 })
const Time = (what: string) =>
  Type.String({ minLength: 1, maxLength: 64, description: `ISO 8601, or relative; ${what}` })

export const logDeletionRoutes = [
  route({
    id: 'deleteEvents',
    method: 'delete',
    path: '/api/logs',
    tag: 'logs',
    summary: 'Deletes events by query and time span',
    description:
      'Deletes the events that `GET /api/logs` lists for the same parameters, with all of their repeats. `expected` is how many ' +
      'they are: `unique_events` of their histogram. When they are not as many, nothing is deleted, and the reply is 409 ' +
      '`count_mismatch` with `details.events` (at most 1,000,000 can be deleted at once; 1,000,001 stands for more). What is ' +
      'deleted leaves lists, histograms, facets, statistics, time series, the calendar and KPIs alike. One deletion runs at a ' +
      'time, for 18 seconds at most: while `remaining` is not 0, ask again with it as `expected`. A message that comes later and ' +
      'repeats an event, of whatever query, begins a new one.',
    role: 'admin',
    query: Type.Object({
      ...EVENT_PARAMETERS,
      start_time: Time('inclusive'),
      end_time: Time('inclusive, not in the future'),
      expected: Type.Integer({
        minimum: 0,
        maximum: 1_000_000,
        description: 'how many events are meant; with any other number nothing is deleted',
      }),
    }),
    reply: Type.Object({ deleted: Count, remaining: Count }, { title: 'DeletedEvents' }),
    errors: ['count_mismatch', 'dependency_unavailable'],
    handle: async ({ query: { expected, ...filters }, principal }, services) => {
      const { start_time: _start, end_time: _end, ...what } = filters
      const texts = Object.values(what).map((value) => String(value ?? '').trim())
      if (texts.every((text) => text === ''))
        throw invalid('q', { message: 'must say what is deleted, or another parameter must' })
      const question = readEventQuestion(filters, services.eventContext, principal.sources)
      if ((question.toMs ?? Infinity) > Date.now() + 1)
        throw invalid('end_time', { message: 'must not be in the future' })
      const deleted = await answered(services.deletions.deleteEvents(question, expected), {
        q: filters.q,
        events: services.events,
      })
      services.announce()
      return deleted
    },
  }),
]
