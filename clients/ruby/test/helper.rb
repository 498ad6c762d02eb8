# frozen_string_literal: true

# Tests whose names are sentences, with results as TAP.
require 'minitest'
require_relative '../lib/pg_pulse'

# The lines of TAP, with what was wrong as comments of four spaces.
class Tap < Minitest::AbstractReporter
  def initialize
    super
    @count = 0
    @passed = true
  end

  def record(result)
    @count += 1
    @passed &&= result.passed? || result.skipped?
    skip = " # SKIP #{result.failure.message}" if result.skipped?
    state = result.passed? || skip ? 'ok' : 'not ok'
    puts "#{state} #{@count} - #{result.name.delete_prefix('test_ ')}#{skip}"
    result.failures.each { |failure| puts failure.message.gsub(/^/, '    ') } unless skip
  end

  def report = puts("1..#{@count}")
  def passed? = @passed
end

# A test of the library.
class LibraryTest < Minitest::Test
  def self.test(sentence, &) = define_method("test_ #{sentence}", &)
  def self.test_order = :alpha
end

at_exit do
  next if $ERROR_INFO

  Minitest.seed = 1
  reporter = Tap.new
  LibraryTest.subclasses.each { |tests| tests.run(reporter, {}) }
  reporter.report
  exit reporter.passed?
end
