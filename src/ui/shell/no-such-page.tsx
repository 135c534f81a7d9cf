import { useEffect } from 'preact/hooks'

import { Icon } from '../lib/icon.js'
import { TopBar } from './top-bar.js'

/** What an address shows that is no screen's. */
export function NoSuchPage() {
  useEffect(() => {
    document.title = 'No such page'
  }, [])
  return (
    <main class="screen">
      <TopBar title="No such page" />
      <div class="nothing">
        <Icon name="search" size={22} />
        <h2>There is no page at this address</h2>
        <p>
          <a href="/explore">Explore</a> finds events; Ctrl K finds everything else.
        </p>
      </div>
    </main>
  )
}
