import { Icon } from '../lib/icon.js'

interface NoPartProps {
  /** The screen that has no such part. */
  readonly path: string
  readonly name: string
}

/** What an address shows that names no part of a screen, or one that the role of the user does not have. */
export const NoPart = ({ path, name }: NoPartProps) => (
  <div class="nothing">
    <Icon name="circle-help" size={22} />
    <h2>Not found</h2>
    <p>There is nothing at this address, or your role may not see it.</p>
    <p>
      <a href={path}>Back to {name}</a>
    </p>
  </div>
)
