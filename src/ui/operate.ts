/** The screens of operators, loaded when one of them is first shown. */
export { Admin } from './admin/admin.js'
export { Alerts } from './alerts/alerts.js'
export { Board } from './incidents/board.js'
export { IncidentScreen } from './incidents/incident.js'
export { NewIncident } from './incidents/new-incident.js'
export { Insights } from './insights/insights.js'
