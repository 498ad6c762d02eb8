# frozen_string_literal: true

require_relative 'lib/pg_pulse/version'

Gem::Specification.new do |gem|
  gem.name = 'pg_pulse'
  gem.version = PgPulse::VERSION
  gem.summary = 'Jobs of pg_pulse, the job queue in PostgreSQL'
  gem.description = 'Adds jobs in your transactions, and runs them in Ruby and Rails'
  gem.authors = ['The authors of pg_pulse']
  gem.homepage = 'https://github.com/pg-pulse/pg_pulse'
  gem.license = 'PostgreSQL'
  gem.required_ruby_version = '>= 3.1'
  gem.files = Dir['lib/**/*.rb', 'exe/*', 'README.md', 'LICENSE', base: __dir__]
  gem.bindir = 'exe'
  gem.executables = ['pg_pulse']
  gem.metadata = { 'rubygems_mfa_required' => 'true' }
end
