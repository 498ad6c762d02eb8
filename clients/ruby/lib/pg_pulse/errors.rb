# frozen_string_literal: true

# Errors: a class for each SQLSTATE of pg_pulse, and sentences for the faults of a connection that a
# producer meets.
module PgPulse
  # An error of the server: `code`, `hint` and `detail` are the server's, `cause` is the driver's.
  class Error < StandardError
    attr_reader :code, :hint, :detail

    def initialize(message, code: nil, hint: nil, detail: nil)
      super(hint ? "#{message}\nHINT: #{hint}" : message)
      @code = code
      @hint = hint
      @detail = detail
    end
  end
end

require_relative 'generated/errors'

module PgPulse
  # Makes errors of the library from errors of drivers.
  module Errors
    # What a statement says of a schema, function, type or column that is not there.
    MISSING = %w[3F000 42883 42P01 42704 42703].freeze

    module_function

    # The error of a driver, or of Active Record, as one of the library; others stay as they are.
    def translate(error)
      result = [error, error.cause].find { |each| each.respond_to?(:result) }&.result
      return error unless result

      code, message, detail, hint = 'CMDH'.chars.map { |field| result.error_field(field.ord) }
      return no_extension(code) if code == '3F000' && message.include?('"pulse"')
      if MISSING.include?(code) && message.match?(/\bpulse\.|column/)
        return other_version("another version: #{message}", code)
      end

      code && CLASSES[code]&.new(message, code:, detail:, hint: hint || HINTS[code]) || error
    end

    def no_extension(code = nil)
      NoExtension.new('the database has no extension pg_pulse', code:, hint: INSTALL)
    end

    def other_version(found, code = nil)
      text = "this library is for pg_pulse #{VERSION}, and the database has #{found}"
      OtherVersion.new(text, code:, hint: UPDATE)
    end
  end
end
