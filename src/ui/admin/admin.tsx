import { useEffect } from 'preact/hooks'

import { place } from '../lib/router.js'
import { may } from '../lib/session.js'
import { NotFound } from '../shell/not-found.js'
import { TabLinks } from '../shell/tab-links.js'
import { ADMIN_TABS } from '../shell/tabs.js'
import { TopBar } from '../shell/top-bar.js'
import { ApiTokens } from './api-tokens.js'
import { Audit } from './audit.js'
import { Health } from './health.js'
import { Sessions } from './sessions.js'
import { Storage } from './storage.js'
import { Users } from './users.js'

/** The screen Admin: the installation, its users and their rights. */
export function Admin() {
  const { path } = place.value
  useEffect(() => {
    document.title = 'Admin'
  }, [])
  return (
    <main class="screen admin">
      <TopBar title="Admin" />
      <TabLinks label="Of administration" tabs={ADMIN_TABS} path={path} />
      <div class="scroll">
        <Content path={path} />
      </div>
    </main>
  )
}

function Content({ path }: { readonly path: string }) {
  if (path === '/admin/storage') return <Storage />
  if (path === '/admin/sessions') return <Sessions />
  if (path === '/admin/users' && may('admin')) return <Users />
  if (path === '/admin/tokens' && may('admin')) return <ApiTokens />
  if (path === '/admin/audit' && may('admin')) return <Audit />
  if (path === '/admin') return <Health />
  return <NotFound path="/admin" name="the health of the service" />
}
