import { Icon } from '../lib/icon.js'

interface NotFoundProps {
  /** The path of the screen. */
  readonly path: string
  readonly name: string
}

/** The content at an address whose part does not exist or is not permitted to the user's role. */
export const NotFound = ({ path, name }: NotFoundProps) => (
  <div class="nothing">
    <Icon name="circle-help" size={22} />
    <h2>Not found</h2>
    <p>There is nothing at this address, or your role may not see it.</p>
    <p>
      <a href={path}>Back to {name}</a>
    </p>
  </div>
)
