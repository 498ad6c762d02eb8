# frozen_string_literal: true

# Calls on a server: in transactions that are well and that are not, of pg and of Active Record,
# over a pooler, on databases of other versions. PGHOST and so on name the server; the role is a
# superuser.
require 'active_record'
require_relative 'helper'
require 'pg'

ActiveRecord::Base.establish_connection(adapter: 'postgresql', database: ENV.fetch('PGDATABASE'))

# A table of the application.
class Purchase < ActiveRecord::Base; end

# See the sentences.
class DatabaseTest < LibraryTest
  POOL = PG.connect
  POOL.exec('CREATE TABLE purchases (id int PRIMARY KEY)')

  def db = POOL

  def with_connection(**settings)
    connection = PG.connect(settings)
    yield connection
  ensure
    connection.close unless connection.finished?
  end

  def jobs_of(identifier)
    db.exec_params('SELECT id, payload, queue_name, state FROM pulse.job WHERE identifier = $1
      ORDER BY id', [identifier]).to_a
  end

  def assert_refused(kind, message = //, &)
    error = assert_raises(kind, &)
    assert_match message, error.message
    error
  end

  test('a job and a row of Active Record are one transaction') do
    buy = lambda do |id|
      Purchase.transaction do
        Purchase.create!(id:)
        added = PgPulse.add_job(Purchase, 'receipt', { purchase: id }, queue_name: 'mail',
                                                                       priority: 3)
        raise ActiveRecord::Rollback if id == 2

        added
      end
    end
    job = buy[1]
    buy[2]
    assert_equal [{ 'id' => job[:id], 'payload' => '{"purchase":1}', 'queue_name' => 'mail',
                    'state' => 'parked' }], jobs_of('receipt')
    assert_equal [3, { 'purchase' => 1 }, Time], [job[:priority], job[:payload], job[:run_at].class]
  end

  test('a job and a row of a connection of pg are one transaction') do
    with_connection do |connection|
      connection.transaction { PgPulse.add_job(connection, 'plain') }
      assert_raises(RuntimeError) do
        connection.transaction { PgPulse.add_job(connection, 'plain') && raise('declined') }
      end
      connection.type_map_for_results = PG::BasicTypeMapForResults.new(connection)
      PgPulse.add_job(connection, 'plain', 1)
    end
    assert_equal(%w[{} 1], jobs_of('plain').map { |job| job['payload'] })
  end

  test('a payload may be anything of JSON') do
    [[1, [2]], 'text', 7, false, nil, { a: { b: "ü\u2028\"" } }, PgPulse.json('{"n": 1.10}')]
      .each { |payload| PgPulse.add_job(db, 'any', payload) }
    PgPulse.add_job(db, 'any')
    assert_equal ['[1,[2]]', '"text"', '7', 'false', 'null', "{\"a\":{\"b\":\"ü\u2028\\\"\"}}",
                  '{"n": 1.10}', '{}'], (jobs_of('any').map { |job| job['payload'] })
  end

  test('a payload of add_jobs may be anything, too') do
    payloads = [nil, 'text', "a\0b", PgPulse.json('{"n": 1.10}')]
    PgPulse.add_jobs(db, [{ identifier: 'several' },
                          *payloads.map { |payload| { identifier: 'several', payload: } }])
    assert_equal(['{}', 'null', '"text"', '"a\u0000b"', '{"n": 1.10}'],
                 jobs_of('several').map { |job| job['payload'] })
  end

  test('a payload that is no JSON adds nothing') do
    circle = []
    circle << circle
    [circle, Float::NAN, "\xff", { n: Float::INFINITY }].each do |payload|
      assert_refused(PgPulse::NotJson, /the payload is no JSON/) do
        PgPulse.add_job(db, 'refused', payload)
      end
    end
    assert_empty jobs_of('refused')
  end

  test('a transaction that has failed, is read-only or over adds nothing, and says so') do
    with_connection do |connection|
      connection.exec('BEGIN')
      assert_raises(PG::DivisionByZero) { connection.exec('SELECT 1/0') }
      aborted = assert_refused(PgPulse::Aborted) { PgPulse.add_job(connection, 'none') }
      assert_match(/ROLLBACK, and repeat/, aborted.hint)
      connection.exec('ROLLBACK')
      connection.exec('BEGIN READ ONLY')
      assert_refused(PgPulse::ReadOnly, /primary/) { PgPulse.add_job(connection, 'none') }
      connection.close
      assert_refused(PG::ConnectionBad, /closed/) { PgPulse.add_job(connection, 'none') }
    end
    Purchase.transaction do
      assert_raises(ActiveRecord::StatementInvalid) { Purchase.find_by_sql('SELECT 1/0') }
      aborted = assert_refused(PgPulse::Aborted) { PgPulse.add_job(Purchase, 'none') }
      assert_kind_of ActiveRecord::StatementInvalid, aborted.cause
      raise ActiveRecord::Rollback
    end
    assert_empty jobs_of('none')
  end

  test('what is no connection is refused, with what to give, and so is a wrong argument') do
    assert_refused(TypeError, /give a PG::Connection/) { PgPulse.add_job('receipt', 'task') }
    assert_refused(ArgumentError, /unknown keyword: :queue/) do
      PgPulse.add_job(db, 'mail', {}, queue: 'q')
    end
    assert_refused(ArgumentError, /wrong number of arguments/) { PgPulse.cancel_job(db) }
  end

  test('a role without the right is told which one') do
    db.exec('CREATE ROLE stranger LOGIN')
    with_connection(user: 'stranger') do |connection|
      assert_refused(PgPulse::NotGranted, /grant_producer/) { PgPulse.add_job(connection, 'none') }
    end
  end

  test('the errors of the server have a class, a code and a hint') do
    assert_equal 'PU004', assert_refused(PgPulse::OutOfRange) { PgPulse.add_job(db, '..') }.code
    assert_refused(PgPulse::NotFound) { PgPulse.cancel_job(db, 10**11) }
    db.exec('BEGIN')
    assert_refused(PgPulse::InTransaction) { PgPulse.wait_for_end(db, []) }
    db.exec('ROLLBACK')
  end

  test('an id beyond 2^53 reaches the server digit for digit') do
    said = []
    spy = Object.new
    spy.define_singleton_method(:exec_params) { |_, values| said << values && PG::Result.allocate }
    ['9007199254740993', 9_007_199_254_740_993].each do |id|
      assert_raises(StandardError) { PgPulse.ended(spy, [id]) }
      assert_raises(StandardError) { PgPulse.cancel_job(spy, id) }
    end
    assert_equal [['{"9007199254740993"}'], ['9007199254740993']] * 2, said
  end

  test('many jobs, jobs after jobs, and how they ended') do
    added = PgPulse.add_jobs(db, [
      { identifier: 'many', payload: [1], queue_name: 'q', run_at: Time.utc(2100),
        flags: ['a', 'b"'] },
      { identifier: 'many', job_key: 'key' }])
    assert_equal [['q', 2100, ['a', 'b"'], nil], [nil, Time.now.year, nil, 'key']],
                 (added.map do |job|
                    [job[:queue_name], job[:run_at].year, *job.values_at(:flags, :job_key)]
                  end)
    ids = added.map { |job| job[:id] }
    after = PgPulse.add_job_after(db, ids, 'after', { n: 1 }, starts_when: 'ended')
    assert_equal 'ended', after[:starts_when]
    flow = PgPulse.add_flow(db, [
      { identifier: 'join', after: [:a, 'b', after[:id]] },
      { key: 'a', identifier: 'part', payload: { n: 1 } },
      { key: 'b', identifier: 'part', queue_name: 'q' }], flow_name: 'flow')
    assert_equal [nil, 'a', 'b'], (flow.map { |row| row[:key] })
    assert_equal 'cancelled', PgPulse.cancel_job(db, ids.first, reason: 'no need')
    assert_equal 3, PgPulse.cancel_flow(db, flow.first[:flow_id])
    assert_equal [[ids.first, 'cancelled']],
                 (PgPulse.ended(db, [ids.first]).map { |row| row.values_at(:id, :state) })
    assert_equal 1, PgPulse.wait_for_end(db, [ids.first], max_wait: 5)
    assert_equal 1, PgPulse.wait_for_end(Purchase, [ids.first], max_wait: 5)
    assert_equal 'key', PgPulse.remove_job(db, 'key')[:job_key]
    assert_nil PgPulse.remove_job(db, 'key')
  end

  test('once in a period, by members in any order') do
    add = lambda do |by, payload|
      PgPulse.add_job(db, 'digest', payload, unique: { for: '1 hour', by: })
    end
    first = add[%w[to kind], { to: 'ada', kind: 'day', n: 1 }]
    second = add[%i[kind to], { n: 2, kind: 'day', to: 'ada' }]
    assert_equal [true, false, first[:id]], [first[:is_new], second[:is_new], second[:id]]
    digest = Class.new { include PgPulse::Task }
    digest.pulse_options(task: 'digest', unique: { for: 3600 })
    assert_equal([true, false], Array.new(2) { digest.add(db, { to: 'bob' })[:is_new] })
    assert_equal true, PgPulse.forget_once(db, 'digest', PgPulse.unique_key({ to: 'bob' }))
  end

  test('schedules and settings') do
    stored = PgPulse.schedule(db, 'nightly', 'report', cron: '0 3 * * *', payload: { n: 1 },
                                                       time_zone: 'Europe/Berlin')
    assert_equal ['nightly', { 'n' => 1 }], stored.values_at(:name, :payload)
    first, second = PgPulse.next_runs(db, 'nightly', max_runs: 2)
    assert_operator first, :<, second
    assert_equal true, PgPulse.unschedule(db, 'nightly')
    task = PgPulse.set_task(db, 'report', timeout: 90, keep_completed: '1 day')
    assert_equal '00:01:30', task[:timeout]
    assert_equal 3, PgPulse.set_queue(db, 'mail', concurrency: 3)[:concurrency]
  end

  test('each call is a statement that the server understands') do
    with_connection do |connection|
      spy = Object.new
      spy.define_singleton_method(:exec_params) do |text, _|
        text.start_with?('CALL') || connection.exec("PREPARE p#{text.hash.abs} AS #{text}")
        throw :asked
      end
      PgPulse::FUNCTIONS.each do |name, function|
        values = function[:takes].transform_values { [] }
        catch(:asked) { PgPulse.send(:call, spy, name, values) }
      end
      count = connection.exec('SELECT count(*) FROM pg_prepared_statements').getvalue(0, 0).to_i
      assert_equal PgPulse::FUNCTIONS.count { |_, each| !each[:is_procedure] }, count
    end
  end

  test('a database without the extension, or with another version') do
    db.exec('CREATE DATABASE bare')
    with_connection(dbname: 'bare') do |bare|
      is_missing = lambda do |&call|
        assert_refused(PgPulse::NoExtension, /CREATE EXTENSION pg_pulse/, &call)
      end
      is_missing.call { PgPulse.add_job(bare, 'none') }
      is_missing.call { PgPulse.check_version(bare) }
      bare.exec("CREATE EXTENSION pg_pulse VERSION '0.1.0'")
      is_old = lambda do |&call|
        assert_refused(PgPulse::OtherVersion, /ALTER EXTENSION pg_pulse UPDATE/, &call)
      end
      is_old.call { PgPulse.check_version(bare) }
      is_old.call { PgPulse.add_job(bare, 'none') }
      is_old.call { PgPulse.add_job(bare, 'none', {}, unique: { for: '1 day' }) }
      bare.exec('DROP EXTENSION pg_pulse; CREATE EXTENSION pg_pulse')
      assert_match(/\A0\.2/, PgPulse.check_version(bare))
      bare.exec("UPDATE pg_extension SET extversion = '0.9.0' WHERE extname = 'pg_pulse'")
      assert_refused(PgPulse::OtherVersion, /for pg_pulse 0\.2\.\d+, .* has 0\.9\.0/) do
        PgPulse.check_version(bare)
      end
    end
  end

  test('through a transaction pooler') do
    skip 'no pgbouncer' unless ENV['POOLER_HOST']
    with_connection(host: ENV.fetch('POOLER_HOST'), port: ENV.fetch('POOLER_PORT')) do |pooled|
      20.times { |n| PgPulse.add_job(pooled, 'pooled', { n: }, job_key: "p#{n}") }
    end
    assert_equal 20, jobs_of('pooled').size
  end
end
