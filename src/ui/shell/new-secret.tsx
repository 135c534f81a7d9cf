import { Icon } from '../lib/icon.js'
import { Dialog } from './dialog.js'
import { copy } from './notice.js'

interface NewSecretProps {
  readonly title: string
  readonly secret: string
  readonly onClose: () => void
}

/** A new key or token, which cannot be shown again. */
export const NewSecret = ({ title, secret, onClose }: NewSecretProps) => (
  <Dialog title={title} onClose={onClose}>
    <p>
      <code class="new-token">{secret}</code>
    </p>
    <p class="note">It is shown now only: copy it to where it is used.</p>
    <p class="line">
      <button class="primary" onClick={() => void copy(secret, 'It is copied.')}>
        <Icon name="copy" size={14} /> Copy
      </button>
      <button onClick={onClose}>Done</button>
    </p>
  </Dialog>
)
