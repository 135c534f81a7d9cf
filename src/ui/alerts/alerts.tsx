import { useEffect } from 'preact/hooks'

import { place } from '../lib/router.js'
import { may } from '../lib/session.js'
import { NotFound } from '../shell/not-found.js'
import { TabLinks } from '../shell/tab-links.js'
import { ALERT_TABS } from '../shell/tabs.js'
import { TopBar } from '../shell/top-bar.js'
import { AlertList } from './alert-list.js'
import { Channels } from './channels.js'
import { Quiet } from './quiet.js'
import { RuleScreen } from './rule.js'
import { Rules } from './rules.js'

/** The screen Alerts: firing alerts, rules, silences and channels. */
export function Alerts() {
  const { path } = place.value
  useEffect(() => {
    document.title = 'Alerts'
  }, [])
  const tab = path.startsWith('/alerts/rules') ? '/alerts/rules' : path
  return (
    <main class="screen alerts-screen">
      <TopBar title="Alerts" />
      <TabLinks label="Of alerts" tabs={ALERT_TABS} path={tab} />
      <div class="scroll">
        <Content path={path} />
      </div>
    </main>
  )
}

function Content({ path }: { readonly path: string }) {
  const rule = /^\/alerts\/rules\/([\w-]+)$/.exec(path)?.[1]
  if (rule !== undefined) return <RuleScreen key={rule} id={rule === 'new' ? null : rule} />
  if (path === '/alerts/rules') return <Rules />
  if (path === '/alerts/quiet') return <Quiet />
  if (path === '/alerts/channels' && may('manager')) return <Channels />
  if (path === '/alerts') return <AlertList />
  return <NotFound path="/alerts" name="alerts" />
}
