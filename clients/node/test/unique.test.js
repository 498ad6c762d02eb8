'use strict'
// The key of `unique`, by the vectors that all libraries share.
const assert = require('node:assert')
const { createHash } = require('node:crypto')
const test = require('node:test')
const { uniqueKey } = require('..')
const vectors = require('../../vectors/unique_keys.json')

const MAX_BYTES = 256

for (const { name, payload, by, canonical, refused } of vectors) {
  test(`unique key: ${name}`, () => {
    if (refused) return assert.throws(() => uniqueKey(payload, by), TypeError)
    const digest = createHash('sha256').update(canonical).digest('hex')
    const key = Buffer.byteLength(canonical) > MAX_BYTES ? `sha256:${digest}` : canonical
    assert.strictEqual(uniqueKey(payload, by), key)
  })
}

test('unique key: of values that JSON writes as texts, and of members without a value', () => {
  assert.strictEqual(
    uniqueKey({ at: new Date(0), no: undefined }),
    '{"at":"1970-01-01T00:00:00.000Z"}',
  )
})
