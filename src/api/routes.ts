import { applicationRoutes } from './routes/applications.js'
import { logRoutes } from './routes/logs.js'
import { sourceRoutes } from './routes/sources.js'

/** Every route of the API. */
export const allRoutes = [...logRoutes, ...sourceRoutes, ...applicationRoutes]
