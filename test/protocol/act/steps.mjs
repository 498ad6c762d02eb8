// The steps of a payload as pairs of a kind and a value, each value as the text that it is.

// The position behind the value of JSON that begins there.
function endOfValue(text, at) {
  const rest = /"(?:[^"\\]|\\.)*"|[[{]|[\]}]|,/gs
  rest.lastIndex = at
  for (let depth = 0, match; (match = rest.exec(text)); ) {
    if ('[{'.includes(match[0])) depth++
    else if (depth === 0 && ',]}'.includes(match[0])) return match.index
    else if (']}'.includes(match[0])) depth--
  }
  return text.length
}

export function steps(text) {
  const found = []
  for (let at = text.indexOf('{'), match; at >= 0; at = text.indexOf('{', at)) {
    match = /\{\s*"(\w+)"\s*:\s*/y
    match.lastIndex = at
    const [whole, kind] = match.exec(text)
    const begin = at + whole.length
    at = endOfValue(text, begin)
    found.push([kind, text.slice(begin, at).trim()])
  }
  return found
}
