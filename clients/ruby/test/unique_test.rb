# frozen_string_literal: true

# The key of `unique`, by the vectors that all libraries share.
require_relative 'helper'

# See clients/vectors/README.md.
class UniqueTest < LibraryTest
  MAX_BYTES = 256

  JSON.parse(File.read("#{__dir__}/../../vectors/unique_keys.json")).each do |vector|
    payload, by, canonical = vector.values_at('payload', 'by', 'canonical')
    test("unique key: #{vector['name']}") do
      next assert_raises(TypeError) { PgPulse.unique_key(payload, by) } if vector['refused']

      digest = "sha256:#{Digest::SHA256.hexdigest(canonical)}"
      assert_equal canonical.bytesize > MAX_BYTES ? digest : canonical,
                   PgPulse.unique_key(payload, by)
    end
  end

  test('unique key: symbols are texts, and a time is what other libraries write') do
    assert_equal '{"at":"1970-01-01T00:00:00.000Z","to":"ada"}',
                 PgPulse.unique_key({ to: :ada, at: Time.at(0), no: 1 }, %i[to at])
  end

  test('unique key: numbers as JavaScript writes them') do
    { 1e-4 => '0.0001', 1e-5 => '0.00001', -1.25e-6 => '-0.00000125', 1.5e-7 => '1.5e-7',
      0.1 => '0.1', 123_456.75 => '123456.75', 1e15 => '1000000000000000' }.each do |number, text|
      assert_equal "[#{text}]", PgPulse.unique_key([number])
    end
  end
end
