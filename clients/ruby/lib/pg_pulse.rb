# frozen_string_literal: true

# pg_pulse: adds jobs of pg_pulse in your transactions, and runs them in this program.
%w[version errors document unique database calls outcome job output task program work]
  .each { |part| require_relative "pg_pulse/#{part}" }
# Rails has loaded Active Job before the gems of the application.
require_relative 'pg_pulse/active_job' if defined?(ActiveJob)
