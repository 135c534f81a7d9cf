import { applicationRoutes } from './routes/applications.js'
import { authRoutes } from './routes/auth.js'
import { ingestKeyRoutes } from './routes/ingest-keys.js'
import { logRoutes } from './routes/logs.js'
import { sourceRoutes } from './routes/sources.js'
import { userRoutes } from './routes/users.js'

/** Every route of the API. */
export const allRoutes = [
  ...authRoutes,
  ...logRoutes,
  ...sourceRoutes,
  ...applicationRoutes,
  ...userRoutes,
  ...ingestKeyRoutes,
]
