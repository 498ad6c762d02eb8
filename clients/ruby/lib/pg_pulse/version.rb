# frozen_string_literal: true

module PgPulse
  VERSION = '0.2.0'
end
