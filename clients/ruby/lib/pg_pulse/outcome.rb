# frozen_string_literal: true

module PgPulse
  # How an attempt ends by the words of the library: `ends` has snooze and checkpoint, or, of an
  # error, retry, retry_in and payload.
  Ending = Struct.new(:ends, :error)

  # Fails the attempt: with `retry: false` for good, with `retry_in` not before so many seconds,
  # with `payload` for the rest of the work.
  class Failure < StandardError
    WORDS = %i[retry retry_in payload].freeze
    attr_reader :ends

    def initialize(message, **ends)
      super(message)
      unknown, = ends.keys - WORDS
      raise ArgumentError, "a Failure has no #{unknown}: it has #{WORDS.join(', ')}" if unknown

      ends[:retry_in] = Outcome.seconds(ends[:retry_in], 'retry_in') if ends[:retry_in]
      @ends = ends
    end
  end

  # How an attempt has ended, as members of a line of the worker protocol, each as JSON.
  module Outcome
    # Of a longer error the server would keep the end, and the beginning of a stack says most.
    MAX_ERROR = 8000
    MAX_SECONDS = 1_000_000_000
    # Frames of the library say nothing of the handler.
    OWN_FRAMES = %r{\n\s+from #{Regexp.escape(__dir__)}/.*}
    THREAD_ENDED = { error: '"the handler has ended its thread"' }.freeze

    module_function

    # The end of a handler that has returned. Raises where the value is no JSON.
    def of_value(job, value)
      ending = job.ending || value
      return members(ending.ends, ending.error) if ending.is_a?(Ending)
      return { done: 'true' } if job.completed?

      { result: Document.encode(value, "the result of #{job.identifier}") }
    end

    # The end of a handler that has raised. Code of the application that writes the rest of the work
    # may raise in its turn.
    def of_error(job, error)
      return members(job.ending.ends, error) if job.ending&.error.equal?(error)

      members(error.is_a?(Failure) ? error.ends : {}, error)
    rescue SystemExit
      raise
    rescue Exception => e # rubocop:disable Lint/RescueException
      members({}, e)
    end

    def members(ends, error)
      told = ends.to_h { |name, value| [name, Document.encode(value, "the #{name}")] }
      error ? { error: JSON.generate(error_text(error)), **told } : told
    end

    # The text of whatever a handler has raised, with its stack and causes, bounded.
    def error_text(error)
      text = readable(error.full_message(highlight: false, order: :top)).gsub(OWN_FRAMES, '')
      text.bytesize > MAX_ERROR ? "#{text.byteslice(0, MAX_ERROR).scrub('')}…" : text
    rescue StandardError
      "the handler raised a #{error.class} that cannot be shown"
    end

    # As UTF-8, and NUL, which no text of the server has, as pulse-worker writes it; a text of bytes
    # is taken for UTF-8.
    def readable(text) = in_utf8(text).tr("\0", "\u{FFFD}")

    def in_utf8(text)
      return text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace, replace: '?') unless
        [Encoding::UTF_8, Encoding::BINARY, Encoding::US_ASCII].include?(text.encoding)

      text.dup.force_encoding(Encoding::UTF_8).scrub('?')
    end

    # A number of seconds, as the worker takes it; of a duration of Active Support its seconds.
    def seconds(value, what)
      number = Float(value)
      return number if (0..MAX_SECONDS).cover?(number)

      raise RangeError, "#{what} is #{value}, and no number of seconds from 0 to #{MAX_SECONDS}"
    end
  end
end
