import type { Paged } from '../lib/paged.js'

/** The end of a list: loads the next page if there is one, and shows that the first page is loading. */
export function MoreButton({ list }: { readonly list: Paged<unknown> }) {
  if (list.items === null && list.error === null) return <p class="waiting" aria-busy="true" />
  if (!list.hasMore) return null
  return (
    <button type="button" class="more-button" onClick={list.more}>
      Show more
    </button>
  )
}
