// Filters the list of contents, which holds the headings of all guides. Without this script the page reads the same.
const search = document.getElementById('search')
const nothing = document.getElementById('nothing')
const list = document.querySelector('#contents > ol')

function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean)
  const matches = (text) => words.every((word) => text.includes(word))
  list.classList.toggle('searching', words.length > 0)
  let found = 0
  for (const guide of list.children) {
    const [title, headings] = guide.children
    const name = title.textContent.toLowerCase()
    let own = matches(name) ? 1 : 0
    for (const heading of headings.children) {
      heading.hidden = words.length > 0 && !matches(`${name} ${heading.textContent.toLowerCase()}`)
      if (!heading.hidden) own += 1
    }
    guide.hidden = words.length > 0 && own === 0
    if (!guide.hidden) found += own
  }
  nothing.hidden = found > 0
  nothing.textContent = found > 0 ? '' : `No heading has “${search.value.trim()}”.`
}

function openFirst(event) {
  if (event.key !== 'Enter' || search.value.trim() === '') return
  const links = [...list.querySelectorAll('li a')]
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean)
  const isVisible = (link) => link.closest('[hidden]') === null
  const best = links.find(
    (link) => isVisible(link) && words.every((word) => link.textContent.toLowerCase().includes(word)),
  )
  const target = best ?? links.find(isVisible)
  if (target !== undefined) location.assign(target.href)
}

search.hidden = false
search.addEventListener('input', filter)
search.addEventListener('keydown', openFirst)
addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target.matches('input, textarea')) return
  event.preventDefault()
  search.focus()
})
