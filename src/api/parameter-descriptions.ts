/**
 * Descriptions of parameters, by name, where the schema has none. They are the same for every
 * operation.
 */
export const PARAMETER_DESCRIPTIONS: Readonly<Record<string, string>> = {
  action: 'only these operations, by the ids that this document gives them',
  actor_id: 'only what these users or API tokens did, by their ids',
  alert_id: '`id` of an alert',
  anomaly_id: '`id` of an anomaly',
  app_id: '`id` of an application',
  application_id: 'only those of these applications, by their ids',
  assignee_id: 'only those of these users, by their ids',
  cursor: '`next_cursor` of the page before, with the same filters',
  event_id: '`id` of an event',
  id: '`id`, as the list and the reply to its creation have it',
  incident_id: 'only those of these incidents, by their ids',
  limit: 'the most items of the reply',
  name: 'name of a source',
  priority: 'only these priorities',
  provider: '`name` of a provider that `GET /api/auth/providers` lists',
  reason: 'only these reasons, such as `invalid_json`',
  rule_id: 'only alerts of this rule, by its id',
  scope: 'only anomalies of these scopes',
  severity: 'only these severities',
  source: 'only these sources',
  state: 'only those in this state',
  status: 'only those with these statuses',
  template_id: '`template_id` of an event',
  trace_id: '`trace_id` of an event, in any case',
  type: 'only these types',
  window: 'length of the time range, which ends now',
}
