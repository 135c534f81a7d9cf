import type { Paged } from '../lib/paged.js'

/** Reads on in a list that has more. */
export const MoreButton = ({ list }: { readonly list: Paged<unknown> }) =>
  list.hasMore ? (
    <button class="more-button" onClick={list.more}>
      Show more
    </button>
  ) : null
