import { Icon } from '../lib/icon.js'
import { sidebar } from '../lib/settings.js'

export function toggleFields(): void {
  sidebar.value = sidebar.value === 'open' ? 'closed' : 'open'
}

export const FieldsToggle = () => (
  <button
    class="quiet square fields-toggle"
    aria-pressed={sidebar.value === 'open'}
    aria-label="Fields"
    title="Show or hide the fields (f)"
    onClick={toggleFields}
  >
    <Icon name="panel-left" />
  </button>
)
