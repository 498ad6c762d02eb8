# frozen_string_literal: true

# Jobs of Active Job: added in the transaction of Active Record, and run by the real classes in
# transactions that are rolled back.
require 'active_job'
require 'active_record'
require_relative '../lib/pg_pulse/testing'
require_relative 'helper'

ActiveRecord::Base.establish_connection(adapter: 'postgresql', database: ENV.fetch('PGDATABASE'))
ActiveJob::Base.queue_adapter = :pg_pulse
ActiveJob::Base.logger = Logger.new(StringIO.new)

class Unreachable < StandardError; end
class Gone < StandardError; end

# Retried three times, in a minute each.
class LetterJob < ActiveJob::Base
  queue_as :mail
  retry_on(Unreachable, attempts: 3, wait: 60)
  discard_on(Gone)

  def perform(address, count: 1)
    case address
    when 'nobody' then raise Unreachable, "nobody, at #{executions}"
    when 'gone' then raise Gone
    when 'later' then PgPulse.job.attempt == 1 ? PgPulse.job.snooze(30) : puts('now')
    when 'again' then LetterJob.perform_later('ada')
    when 'counts' then [2, 4].include?(executions) ? puts(executions) : raise(Unreachable)
    when 'by hand' then executions == 1 ? retry_job(wait: 90) : puts('second')
    else puts "#{count} to #{address}"
    end
  end
end

# A task of its own, with a priority.
class ImportJob < ActiveJob::Base
  pulse_options task: 'import', takes: 2
  queue_with_priority 7

  def perform = logger.info('imported')
end

# See the sentences.
class ActiveJobTest < LibraryTest
  def in_test(&) = PgPulse::Testing.rolled_back(ActiveRecord::Base, &)

  def jobs
    ActiveRecord::Base.connection.select_rows(
      'SELECT identifier, queue_name, priority, run_at > now(), payload FROM pulse.job ORDER BY id')
  end

  def states(attempts) = attempts.map { |each| [each.attempt, each.state] }

  test('a job is a row of the transaction, and its payload is that of Active Job') do
    in_test do
      job = LetterJob.perform_later('ada', count: 2)
      ImportJob.set(wait: 3600).perform_later
      letter, import, *more = jobs
      assert_equal [['active_job', nil, 0, false], []], [letter.first(4), more]
      assert_equal ['import', nil, 7, true], import.first(4)
      payload = JSON.parse(letter.last)
      assert_equal ['LetterJob', job.job_id, 'mail'],
                   payload.values_at('job_class', 'job_id', 'queue_name')
      assert_match(/\A\d+\z/, job.provider_job_id)
    end
    assert_empty jobs
  end

  test('an argument may have NUL, and a time its microseconds') do
    in_test do |testing|
      at = Time.at(Time.now.to_i + 60, 123_456, :usec)
      LetterJob.set(wait_until: at).perform_later("a\0b")
      run_at = ActiveRecord::Base.connection.select_value(
        'SELECT to_char(run_at, \'US\') FROM pulse.job')
      assert_equal '123456', run_at
      testing.travel('61 s')
      attempt, = testing.run_jobs
      assert_equal ['completed', "a\0b"], [attempt.state, attempt.payload['arguments'].first]
    end
  end

  test('queue_as is a queue of pg_pulse where the adapter says so') do
    adapter = ActiveJob::QueueAdapters::PgPulseAdapter.new(queues: %w[mail],
                                                           database: ActiveRecord::Base)
    refute adapter.enqueue_after_transaction_commit?
    in_test do
      adapter.enqueue(LetterJob.new('ada'))
      adapter.enqueue(ImportJob.new)
      assert_equal(['mail', nil], jobs.map { |job| job[1] })
    end
  end

  test('the tasks are one for all classes, and those that classes name') do
    tasks = PgPulse.tasks.grep(PgPulse::ActiveJobs::Performer).map(&:to_a)
    assert_equal [['active_job', nil], ['import', 2]], tasks.sort
  end

  test('jobs run by their classes, and what they log is theirs') do
    in_test do |testing|
      LetterJob.perform_later('ada', count: 2)
      ImportJob.perform_later
      letter, import = testing.run_jobs
      assert_equal ['completed', nil], [letter.state, letter.result]
      assert_includes letter.logs, '2 to ada'
      assert_equal 'completed', import.state
      assert(import.logs.any? { |line| line.end_with?('imported') })
    end
  end

  test('retry_on ends the attempt, is no second job, and its attempts are the last word') do
    in_test do |testing|
      LetterJob.perform_later('nobody')
      seen = Array.new(4) do
        testing.run_jobs.tap { |attempts| assert_operator jobs.size, :<=, 1, attempts.inspect }
               .tap { assert_empty testing.run_jobs }.tap { testing.travel('61 s') }
      end
      assert_equal [[1, 'ready'], [2, 'ready'], [3, 'failed']], states(seen.flatten)
      assert_equal(1.upto(3).map { |n| "nobody, at #{n}" },
                   seen.flatten.map { |each| each.error[/nobody, at \d/] })
      assert_equal 1, seen.flatten.map(&:id).uniq.size
    end
  end

  test('executions before the add count') do
    in_test do |testing|
      LetterJob.perform_now('counts')
      testing.travel('61 s')
      attempt, = testing.run_jobs
      assert_equal ['completed', '2'], [attempt.state, attempt.logs.find { |line| line == '2' }]
      job = LetterJob.new('counts')
      job.executions = 2
      job.enqueue
      seen = testing.run_jobs
      testing.travel('61 s')
      seen += testing.run_jobs
      assert_equal [[1, 'ready'], [2, 'completed']], states(seen)
      assert_includes seen.last.logs, '4'
    end
  end

  test('retry_job is the end of the attempt too, and another job is another job') do
    in_test do |testing|
      LetterJob.perform_later('by hand')
      assert_equal [[1, 'ready']], states(testing.run_jobs)
      testing.travel('91 s')
      assert_equal [[2, 'completed']], states(testing.run_jobs)
      LetterJob.perform_later('again')
      assert_equal [[1, 'completed'], [1, 'completed']], states(testing.run_jobs)
    end
  end

  test('discard_on completes the job, and a snooze gives the attempt back') do
    in_test do |testing|
      LetterJob.perform_later('gone')
      assert_equal [[1, 'completed']], states(testing.run_jobs)
      LetterJob.perform_later('later')
      assert_equal [[1, 'snoozed']], states(testing.run_jobs)
    end
  end

  test('a class that is gone fails its job') do
    in_test do |testing|
      PgPulse.add_job(ActiveRecord::Base, 'active_job', { job_class: 'NoSuchJob', arguments: [] })
      assert_match(/uninitialized constant NoSuchJob/, testing.run_jobs.first.error)
    end
  end
end
