/**
 * Makes an element. Text goes in as text nodes only, so nothing from the API is ever read as HTML.
 *
 * @param tag e.g. `div` or `div.note`
 * @param attributes properties of the element; `data` and `aria` are set as attributes
 */
export function element(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split('.')
  const node = document.createElement(name)
  if (classes.length > 0) node.className = classes.join(' ')
  for (const [key, value] of Object.entries(attributes)) {
    if (key.includes('-') || key === 'for') node.setAttribute(key, value)
    else node[key] = value
  }
  node.append(...children.filter((child) => child !== null && child !== undefined))
  return node
}

export function pretty(text, type) {
  if (!/json/.test(type ?? '')) return text
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
