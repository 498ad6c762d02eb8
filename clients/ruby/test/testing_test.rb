# frozen_string_literal: true

# Tests with the real handlers, in a transaction that is rolled back.
require 'active_record'
require_relative '../lib/pg_pulse/testing'
require_relative 'helper'
require 'pg'

ActiveRecord::Base.establish_connection(adapter: 'postgresql', database: ENV.fetch('PGDATABASE'))

# A table of the application.
class Mail < ActiveRecord::Base
  self.primary_key = 'purchase'
end

# Writes a row, and adds a job.
class Receipt
  include PgPulse::Task

  def perform(payload)
    puts "to #{payload['purchase']}"
    job.progress(0.5, message: 'half')
    Mail.create!(purchase: payload['purchase'])
    Thanks.add(Mail, payload)
    { sent: payload['purchase'] }
  end
end

# A result with digits.
class Thanks
  include PgPulse::Task
  def perform(_) = PgPulse.json('{"exact": 1.10}')
end

# Ends in each way of the library.
class Steps
  include PgPulse::Task

  def perform(_)
    raise PgPulse::Failure.new('no more', retry: false) if job.attempt > 1

    if job.last_checkpoint
      raise 'other digits' unless job.last_checkpoint_text == '{"n": 1.10}'
      raise PgPulse::Failure.new('the rest', payload: ['rest'], retry_in: 60)
    end
    job.checkpoint(PgPulse.json('{"n": 1.10}'))
    job.snooze(60)
  end
end

# Fails behind its row.
class Undone
  include PgPulse::Task
  def perform(_) = Mail.create!(purchase: 9) && raise('after the row')
end

# See the sentences.
class TestingTest < LibraryTest
  CONNECTION = PG.connect
  CONNECTION.exec('CREATE TABLE mails (purchase int PRIMARY KEY)')

  def teardown
    left = CONNECTION.exec('SELECT (SELECT count(*) FROM mails) + (SELECT count(*) FROM pulse.job)')
    assert_equal '0', left.getvalue(0, 0), 'nothing is left'
  end

  test('jobs run with their handlers, and their jobs run too') do
    PgPulse::Testing.rolled_back(Mail) do |testing|
      Receipt.add(Mail, { purchase: 1 })
      PgPulse.add_job(Mail, 'other')
      receipt, thanks, *more = testing.run_jobs
      assert_equal ['receipt', 1, { 'purchase' => 1 }, 'completed', { 'sent' => 1 }, nil, ['to 1']],
                   receipt.to_a.drop(1)
      assert_equal ['completed', { 'exact' => 1.1 }, []], [thanks.state, thanks.result, more]
      assert_equal 1, Mail.count
    end
  end

  test('a failed attempt leaves no rows, and time travels to the next') do
    PgPulse::Testing.rolled_back(Mail) do |testing|
      2.times { Receipt.add(Mail, { purchase: 1 }, max_attempts: 2) }
      failed = testing.run_jobs(Receipt).last
      assert_equal ['ready', 1], [failed.state, failed.attempt]
      assert_match(/duplicate key/, failed.error)
      assert_empty testing.run_jobs(Receipt)
      testing.travel('1 hour')
      again, = testing.run_jobs([Receipt])
      assert_equal ['failed', 2], [again.state, again.attempt]
    end
  end

  test('the rows of a handler that raises are rolled back') do
    PgPulse::Testing.rolled_back(Mail) do |testing|
      Undone.add(Mail)
      assert_match(/after the row/, testing.run_jobs(Undone).first.error)
      assert_equal 0, Mail.count
    end
  end

  test('transactions of a connection of pg are savepoints, and end the job exactly once') do
    PgPulse::Testing.rolled_back(CONNECTION) do |testing|
      db = testing.db
      pay = task('pay') do |job|
        db.transaction do
          db.exec('INSERT INTO mails VALUES (2)')
          job.fence(db)
          job.complete(db, 'paid')
        end
      end
      undo = task('undo') do
        db.exec('BEGIN')
        db.exec('INSERT INTO mails VALUES (3)')
        db.exec('ROLLBACK')
        nil
      end
      %w[pay undo].each { |name| PgPulse.add_job(db, name) }
      assert_equal(%w[completed completed], testing.run_jobs(pay, undo).map(&:state))
      assert_equal [['2']], db.exec('SELECT purchase FROM mails').values
    end
  end

  PURCHASES = 'SELECT string_agg(purchase::text, \' \' ORDER BY purchase) FROM mails'

  test('transactions are nested by whatever call and text they come') do
    { ['BEGIN', 'INSERT INTO mails VALUES (1)', 'ROLLBACK'] => nil,
      ['BEGIN; INSERT INTO mails VALUES (1); COMMIT'] => '1',
      ["/* of\nit */ start transaction;INSERT INTO mails VALUES (1);ROLLBACK -- ;"] => nil,
      ["BEGIN; INSERT INTO mails SELECT length(E'\\'; COMMIT'); END;"] => '9',
      ["DO $a$ BEGIN INSERT INTO mails VALUES (2); END $a$; -- '\nBEGIN;", 'ABORT'] => '2',
      ['BEGIN; SAVEPOINT a; INSERT INTO mails VALUES (3)', 'ROLLBACK TO a', 'COMMIT'] => nil }
      .each do |texts, purchases|
      %i[exec query async_exec exec_params].each do |call|
        next if call == :exec_params && texts.any? { |text| text.include?(';') }

        PgPulse::Testing.rolled_back(CONNECTION) do |testing|
          texts.each { |text| testing.db.public_send(call, text, *([[]] if call == :exec_params)) }
          assert_equal [[purchases]], testing.db.exec(PURCHASES).values, texts.join('; ')
        end
      end
    end
  end

  test('the last statement of a text gives the result') do
    PgPulse::Testing.rolled_back(CONNECTION) do |testing|
      text = 'BEGIN; SELECT 1; COMMIT; SELECT 2'
      assert_equal '2', testing.db.exec(text).getvalue(0, 0)
      assert_equal('2', testing.db.exec(text) { |result| result.getvalue(0, 0) })
    end
  end

  test('a transaction that a handler leaves open goes with the rows before it') do
    PgPulse::Testing.rolled_back(CONNECTION) do |testing|
      db = testing.db
      letter = task('letter') do
        db.exec('INSERT INTO mails VALUES (1)')
        db.exec('BEGIN; INSERT INTO mails VALUES (2)')
        raise 'within it'
      end
      PgPulse.add_job(db, 'letter')
      assert_equal %w[ready], testing.run_jobs(letter).map(&:state)
      assert_nil db.exec(PURCHASES).getvalue(0, 0)
    end
  end

  test('a job whose transaction is undone has failed') do
    PgPulse::Testing.rolled_back(CONNECTION) do |testing|
      db = testing.db
      letter = task('letter') do |job|
        db.exec('BEGIN')
        job.progress(0.5)
        job.complete(db)
        db.exec(job.payload['ends'])
      end
      %w[ROLLBACK COMMIT].each { |ends| PgPulse.add_job(db, 'letter', { ends: }) }
      assert_equal [['ready', 'its transaction did not commit'], ['completed', nil]],
                   testing.run_jobs(letter).map { |each| [each.state, each.error] }
    end
  end

  test('a transaction of Active Record that is undone has not completed the job') do
    PgPulse::Testing.rolled_back(Mail) do |testing|
      letter = task('letter') do |job|
        Mail.transaction(requires_new: true) { job.complete(Mail) && raise(ActiveRecord::Rollback) }
      end
      PgPulse.add_job(Mail, 'letter')
      assert_equal ['ready'], testing.run_jobs(letter).map(&:state)
    end
  end

  test('whatever a handler raises fails the attempt with its text') do
    [CONNECTION, Mail].each do |database|
      PgPulse::Testing.rolled_back(database) do |testing|
        letter = task('letter') do |job|
          job.progress(0.5, message: "a\0b")
          raise Exception, "two\0 words" # rubocop:disable Lint/RaiseException
        end
        PgPulse.add_job(testing.db, 'letter')
        attempt, = testing.run_jobs(letter)
        assert_equal 'ready', attempt.state
        assert_includes attempt.error, "two\u{FFFD} words (Exception)"
      end
    end
  end

  test('ends by the words of the library, and checkpoints') do
    PgPulse::Testing.rolled_back(Mail) do |testing|
      Steps.add(Mail, ['all'])
      seen = Array.new(3) do
        attempts = testing.run_jobs(Steps)
        testing.travel('61 s')
        attempts.map { |each| [each.state, each.attempt, each.payload] }
      end
      assert_equal [['snoozed', 1, ['all']], ['ready', 1, ['all']], ['failed', 2, ['rest']]],
                   seen.flatten(1)
    end
  end

  test('a database without pg_pulse_tap is told what to install') do
    CONNECTION.exec('CREATE DATABASE untested')
    bare = PG.connect(dbname: 'untested')
    error = assert_raises(PgPulse::Error) { PgPulse::Testing.rolled_back(bare) { flunk } }
    assert_match(/no extension pg_pulse_tap\nHINT: CREATE EXTENSION pg_pulse_tap/, error.message)
  ensure
    bare.close
  end

  def task(identifier, &handler)
    Struct.new(:identifier, :handler) { def run(job) = handler.call(job) }.new(identifier, handler)
  end
end
