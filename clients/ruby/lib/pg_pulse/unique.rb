# frozen_string_literal: true

require 'digest'

# The key of `unique`: canonical JSON of members of the payload. Every library of pg_pulse makes the
# same key of the same payload, and clients/vectors has examples that all libraries pass.
module PgPulse
  # The key of a payload by these members, in any order; without `by` of the whole payload.
  def self.unique_key(payload, by = nil)
    # As the server gets the payload: times are texts by then.
    document = Document.parse(Document.encode(payload, 'the payload'))
    if by && !document.is_a?(Hash)
      raise TypeError, 'unique has `by`, which names members, and the payload is no object'
    end

    key = UniqueKey.canonical(by ? document.slice(*Statement.list(by).map(&:to_s)) : document)
    key.bytesize > UniqueKey::MAX_BYTES ? "sha256:#{Digest::SHA256.hexdigest(key)}" : key
  end

  # Canonical JSON: see clients/vectors/README.md.
  module UniqueKey
    # A longer key is its digest.
    MAX_BYTES = 256
    MAX_SAFE = (2**53) - 1
    # JavaScript writes numbers below 10^-6 with an exponent, and Ruby numbers below 10^-4.
    LEAST_EXPONENT = -6

    module_function

    def canonical(value)
      case value
      when Array then "[#{value.map { |each| canonical(each) }.join(',')}]"
      when Hash
        members = value.sort.map { |name, each| "#{JSON.generate(name)}:#{canonical(each)}" }
        "{#{members.join(',')}}"
      when Numeric then number(value)
      else JSON.generate(value)
      end
    end

    def number(value)
      if value.abs > MAX_SAFE
        raise NotJson, "a unique key has the number #{value}: give it as a text"
      end
      return value.to_i.to_s if value.to_i == value

      digits, exponent = value.to_s.split('e')
      return digits unless exponent

      digits = digits.delete_suffix('.0')
      return "#{digits}e#{exponent.to_i}" if exponent.to_i < LEAST_EXPONENT

      "#{'-' if value.negative?}0.#{'0' * (-exponent.to_i - 1)}#{digits.delete('-.')}"
    end
  end
end
