# frozen_string_literal: true

require 'json'
require 'strscan'
require 'time'

module PgPulse
  # A value that JSON does not have, or too much of it.
  class NotJson < TypeError; end

  # A document of JSON as a text, which is stored digit for digit.
  class Json
    attr_reader :text

    def initialize(text)
      Document.parse(text)
      # A line break is white space between tokens, and would end a line of the protocol.
      @text = text.gsub(/[\r\n]/, ' ')
    end

    def as_json(*) = raise(NotJson, 'PgPulse.json(text) is a whole document, no part of another')
  end

  def self.json(text) = Json.new(text)

  # JSON as the library writes it: for payloads, results, checkpoints and lines.
  module Document
    TOKEN = /"(?>[^"\\]+|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+/m
    DEEPER = { '{' => 1, '[' => 1, '}' => -1, ']' => -1 }.freeze

    module_function

    # The value of a text, however deep it is.
    def parse(text) = JSON.parse(text, max_nesting: 0)

    # The text of a value; `what` names the value where it is no JSON.
    def encode(value, what)
      value.is_a?(Json) ? value.text : JSON.generate(plain(value), max_nesting: 0)
    rescue SystemStackError
      raise NotJson, "#{what} is no JSON: it is within itself"
    rescue NotJson, JSON::GeneratorError, EncodingError => e
      raise NotJson, "#{what} is no JSON: #{e.message}"
    end

    # Objects that are no JSON have the value that Active Support gives them.
    def plain(value)
      case value
      when nil, true, false, Integer, Float, String, Symbol then value
      when Hash then value.transform_values { |each| plain(each) }
      when Array then value.map { |each| plain(each) }
      when Time then value.getutc.iso8601(3)
      else
        raise NotJson, "it has a #{value.class}" unless value.respond_to?(:as_json)

        plain(value.as_json)
      end
    end

    # The member of an object as the text of the object spells it; nil where there is none.
    def member_text(text, name)
      scanner = StringScanner.new(text)
      depth = 0
      first = before = nil
      while scanner.skip(/\s*/) && (piece = scanner.scan(TOKEN))
        if first && depth == 1 && [',', '}'].include?(piece)
          return text.byteslice(first...(scanner.pos - 1)).strip
        end

        # In the outermost object a colon stands behind a name only.
        first = scanner.pos if depth == 1 && piece == ':' && before == "\"#{name}\""
        depth += DEEPER.fetch(piece, 0)
        before = piece
      end
    end
  end
end
