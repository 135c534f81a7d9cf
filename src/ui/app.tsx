import { useEffect } from 'preact/hooks'

import { Explore } from './explore/explore.js'
import { useKeys } from './lib/keys.js'
import { lazy } from './lib/lazy.js'
import { followLinks, go, place } from './lib/router.js'
import { requiredAction, user } from './lib/session.js'
import {
  areKeysOpen,
  draft,
  exporting,
  isPaletteOpen,
  openKeys,
  openPalette,
} from './shell/open-dialogs.js'
import { Notice } from './shell/notice.js'
import { Rail } from './shell/rail.js'
import { SCREENS } from './shell/screens.js'

export function App() {
  if (user.value === null) return <LogIn />
  return requiredAction.value === '' ? <Shell /> : <RequiredAction />
}

function Shell() {
  useKeys('Everywhere', [
    { key: 'mod+k', label: 'go to or do something', run: openPalette },
    { key: '?', label: 'these keys', run: openKeys },
    ...SCREENS.map(({ key, name, path: to }) => ({
      key: `g ${key}`,
      label: name,
      run: () => go(to),
    })),
  ])
  const { path, params } = place.value
  const isWhole = path.startsWith('/events/') ? params.has('from') : path !== '/'
  useEffect(() => {
    if (isWhole) return
    void import('./later.js')
      .then(({ startAddress, eventAddress }) =>
        path === '/' ? startAddress(params) : eventAddress(place.value),
      )
      .then((to) => {
        if (place.value.path === path) go(to, { replace: true })
      })
  }, [path, isWhole])
  return (
    <div class="shell" onClick={followLinks}>
      <Rail />
      <Screen path={isWhole ? path : '/'} />
      {isPaletteOpen.value && <Palette />}
      {areKeysOpen.value && <KeysHelp />}
      {draft.value !== null && <NewIncident />}
      {exporting.value !== null && <ExportProgress />}
      <Notice />
    </div>
  )
}

function Screen({ path }: { readonly path: string }) {
  if (path === '/explore' || path.startsWith('/events/')) return <Explore />
  if (path === '/live') return <Live />
  if (path === '/templates') return <Templates />
  const template = /^\/templates\/(\w+)$/.exec(path)?.[1]
  if (template !== undefined) return <TemplateScreen id={template} />
  if (path.startsWith('/overview')) return <Overview />
  if (path.startsWith('/sources')) return <SourcesScreen />
  if (path.startsWith('/alerts')) return <Alerts />
  if (path === '/incidents') return <Board />
  const incident = /^\/incidents\/([\w-]+)$/.exec(path)?.[1]
  if (incident !== undefined) return <IncidentScreen key={incident} id={incident} />
  if (path === '/insights') return <Insights />
  if (path.startsWith('/admin')) return <Admin />
  // An empty screen while the default view, or the time of the event in the address, is being loaded.
  return <main class="found waiting" aria-busy="true" />
}

const ExportProgress = lazy(async () => (await import('./later.js')).ExportProgress)
const more = () => import('./more.js')
const Live = lazy(async () => (await more()).Live)
const Templates = lazy(async () => (await more()).Templates)
const TemplateScreen = lazy(async () => (await more()).TemplateScreen)
const Overview = lazy(async () => (await more()).Overview)
const SourcesScreen = lazy(async () => (await more()).SourcesScreen)
const Palette = lazy(async () => (await more()).Palette)
const KeysHelp = lazy(async () => (await more()).KeysHelp)
const operate = () => import('./operate.js')
const Admin = lazy(async () => (await operate()).Admin)
const Alerts = lazy(async () => (await operate()).Alerts)
const Board = lazy(async () => (await operate()).Board)
const IncidentScreen = lazy(async () => (await operate()).IncidentScreen)
const NewIncident = lazy(async () => (await operate()).NewIncident)
const Insights = lazy(async () => (await operate()).Insights)
const LogIn = lazy(async () => (await import('./shell/log-in.js')).LogIn)
const RequiredAction = lazy(async () => (await more()).RequiredAction)
