# frozen_string_literal: true

# What the library promises without a server: its errors, its tasks, its JSON.
require_relative 'helper'
require 'pg'

# Named so that no test defines a task of the same name.
class OrderMail
  include PgPulse::Task
  pulse_options takes: 3, unique: { for: 60 }

  def perform(payload) = payload
end

# Inherits the handler, and has options of its own.
class OrderCopy < OrderMail
  pulse_options task: 'copy'
end

# An error as the driver has it.
class FakeError < StandardError
  Result = Struct.new(:fields) do
    def error_field(field) = fields[field.chr]
  end

  def initialize(code, message, hint = nil)
    super(message)
    @fields = { 'C' => code, 'M' => message, 'H' => hint }
  end

  def result = Result.new(@fields)
end

# See the sentences.
class LibraryItselfTest < LibraryTest
  test('an error of the server becomes one with its code and a way out') do
    lost = PgPulse::Errors.translate(FakeError.new('PU001', 'the claim is lost', 'Stop.'))
    assert_instance_of PgPulse::ClaimLost, lost
    assert_equal "the claim is lost\nHINT: Stop.", lost.message
    assert_equal 'PU001', lost.code
    other = FakeError.new('23505', 'duplicate key')
    assert_same other, PgPulse::Errors.translate(other)
  end

  test('each SQLSTATE of pg_pulse has a class') do
    codes = File.read("#{__dir__}/../../../docs/errors.md").scan(/^\| `(PU0\d\d)` /).flatten
    refute_empty codes
    codes.each do |code|
      assert_kind_of PgPulse::Error, PgPulse::Errors.translate(FakeError.new(code, code))
    end
  end

  test('a member of a document keeps its digits') do
    text = '{"id":"1","payload" : {"n": 9007199254740993.10, "payload": 1} ,' \
           '"job":{"checkpoint":[1]}}'
    member = PgPulse::Document.method(:member_text)
    assert_equal '{"n": 9007199254740993.10, "payload": 1}', member[text, 'payload']
    assert_equal '[1]', member[member[text, 'job'], 'checkpoint']
    assert_nil member[text, 'checkpoint']
    long = JSON.generate(text: '\\"é' * (1 << 19), last: 2)
    assert_equal '2', member[long, 'last']
  end

  test('json(text) is a whole document') do
    assert_raises(JSON::ParserError) { PgPulse.json('{') }
    assert_raises(PgPulse::NotJson) { PgPulse::Document.encode({ part: PgPulse.json('1') }, 'it') }
    assert_equal '[' * 101, PgPulse.json("#{'[' * 101}#{']' * 101}").text.delete(']')
    assert_equal '{"n":  1.10}', PgPulse::Document.encode(PgPulse.json("{\"n\": \n1.10}"), 'it')
  end

  test('a value that JSON does not have is refused with its name') do
    circle = {}
    circle['self'] = [circle]
    { Object.new => /the payload is no JSON: it has a Object/, circle => /it is within itself/,
      Float::NAN => /NaN/, "\xff" => /is no JSON/, 1i => /Complex/ }.each do |value, message|
      error = assert_raises(PgPulse::NotJson) { PgPulse::Document.encode(value, 'the payload') }
      assert_match message, error.message
    end
    assert_equal '{"a":[1,null,"b",1180591620717411303424]}',
                 PgPulse::Document.encode({ a: [1, nil, :b, 2**70] }, 'it')
  end

  test('the text of an error is bounded, and cut between characters') do
    text = PgPulse::Outcome.error_text(RuntimeError.new('é' * 8000))
    assert_operator text.bytesize, :<, 8192
    assert_match(/\A.*é+…\z/, text)
  end

  test('a value that raises while it is written fails the job with the reason') do
    job = PgPulse::Job.new(nil, { 'id' => '1', 'job' => { 'id' => '1' } }, '{}')
    [IOError, NotImplementedError, Exception].each do |error|
      broken = Object.new
      broken.define_singleton_method(:as_json) { |*| raise error, 'no value' }
      told = PgPulse::Outcome.of_error(job, PgPulse::Failure.new('f', payload: broken))
      assert_equal [:error], told.keys
      assert_includes told[:error], "no value (#{error})"
    end
  end

  test('a class names its task, and a class within inherits the options') do
    assert_equal ['order_mail', 3], [OrderMail.identifier, OrderMail.takes]
    assert_equal ['copy', 3], [OrderCopy.identifier, OrderCopy.takes]
    assert_includes PgPulse.tasks, OrderCopy
    assert_raises(ArgumentError) { OrderMail.pulse_options(take: 3) }
    assert_raises(ArgumentError) { PgPulse::Failure.new('no', retries: 1) }
  end

  # Keeps what a job says.
  class Port
    attr_reader :told

    def tell(_job, members) = (@told ||= []) << members.transform_values { |json| JSON.parse(json) }
  end

  test('what a job says of itself') do
    port = Port.new
    job = PgPulse::Job.new(port, { 'id' => '1', 'job' => { 'id' => '1' } }, '{}')
    job.progress(1r / 2, message: :half, stage: 2)
    job.print("two\nlines\n", 'info')
    latin = (+"caf\xe9\n").force_encoding(Encoding::ISO_8859_1)
    job.print(['wide'.encode('UTF-16LE'), latin].map { PgPulse::Outcome.readable(_1) }.join, 'info')
    assert_equal [{ progress: 0.5, message: 'half', stage: '2' }, { log: 'two', level: 'info' },
                  { log: 'lines', level: 'info' }, { log: 'widecafé', level: 'info' }],
                 port.told
    [50, -1, Float::NAN].each do |wrong|
      error = assert_raises(RangeError) { job.progress(wrong) }
      assert_match(/from 0 to 1, and not/, error.message)
    end
  end

  test('ids of parents are texts, as all ids') do
    { nil => nil, [{ 'id' => 7, 'result' => 1 }] => [{ 'id' => '7', 'result' => 1 }] }
      .each do |parents, told|
      document = { 'id' => '9', 'parents' => parents }
      job = PgPulse::Job.new(nil, { 'id' => '9', 'job' => document }, '')
      told ? assert_equal(told, job.parents) : assert_nil(job.parents)
    end
  end

  test('times are numbers of seconds') do
    [-1, Float::NAN, Float::INFINITY].each do |wrong|
      assert_raises(RangeError) { PgPulse::Failure.new('later', retry_in: wrong) }
      assert_raises(RangeError) { PgPulse::Outcome.seconds(wrong, 'the delay') }
    end
  end

  test('a wrong argument is refused') do
    [{ by: [] }, { for: 1, bye: [] }, '1 day', 7].each do |unique|
      error = assert_raises(ArgumentError) { PgPulse.add_job(nil, 'x', {}, unique:) }
      assert_includes error.message, 'unique has for, by and states'
    end
    error = assert_raises(ArgumentError) { PgPulse.add_jobs(nil, [{ identifier: 'x', paylod: 1 }]) }
    assert_includes error.message, 'a job has no paylod'
    [-> { PgPulse.add_jobs(nil, ['x']) }, -> { PgPulse.add_flow(nil, ['x']) }].each do |call|
      assert_match(/a job is a Hash of .*, and "x" is given/,
                   assert_raises(TypeError, &call).message)
    end
  end

  test('what is no list is refused wherever a list is taken') do
    calls = { 'flags' => ->(value) { PgPulse.add_job(nil, 'x', {}, flags: value) },
              'jobs' => ->(value) { PgPulse.add_jobs(nil, value) },
              'their flags' => ->(value) { PgPulse.add_jobs(nil, [{ flags: value }]) },
              'a flow' => ->(value) { PgPulse.add_flow(nil, value) },
              'parents in it' => ->(value) { PgPulse.add_flow(nil, [{ 'after' => value }]) },
              'parents' => ->(value) { PgPulse.add_job_after(nil, value, 'x') },
              'ids' => ->(value) { PgPulse.wait_for_end(nil, value) },
              'members' => ->(value) { PgPulse.unique_key({ a: 1 }, value) },
              'tasks' => ->(value) { PgPulse.work(value) } }
    calls.to_a.product(['12', 12, :a, {}, { a: 1 }]).each do |(name, call), value|
      error = assert_raises(TypeError, "#{name}: #{value}") { call[value] }
      assert_equal "a list is wanted, and #{value.inspect} is given", error.message
    end
  end

  test('times are told to the microsecond, and dates have no time zone') do
    db = Connection.new
    at = Time.at(1_900_000_000, 123_456.6, :usec, in: '+02:00')
    said = '2030-03-17T17:46:40.123457Z'
    { at => said, at.to_datetime => said, '2030-03-17' => '2030-03-17' }.each do |run_at, text|
      PgPulse.add_job(db, 'x', run_at:)
      assert_equal ['x', text], db.asked
      PgPulse.add_jobs(db, [{ run_at: }])
      assert_equal PgPulse::Statement.array([JSON.generate(run_at: text), nil]), db.asked.first
      PgPulse.add_flow(db, [{ start_by: run_at }])
      assert_equal text, JSON.parse(db.asked.first).first['start_by']
    end
    date = Date.new(2030, 1, 1)
    [-> { PgPulse.add_job(db, 'x', run_at: date) }, -> { PgPulse.add_jobs(db, [{ run_at: date }]) },
     -> { PgPulse.add_flow(db, [{ 'start_by' => date }]) }].each do |call|
      assert_match(/is 2030-01-01, a date without a time zone: give a Time/,
                   assert_raises(ArgumentError, &call).message)
    end
  end

  test('what is no number of jobs is refused at once') do
    [0, -1, 1.5, '7', 10_001].each do |takes|
      [-> { OrderCopy.pulse_options(takes:) }, -> { PgPulse.work([OrderMail], takes:) }]
        .each do |call|
        error = assert_raises(ArgumentError, &call)
        assert_match(/takes is .*, and no number of jobs from 1 to 10,000/, error.message)
      end
    end
  end

  # Keeps the parameters of a call, which gets no row.
  class Connection
    attr_reader :asked

    def exec_params(_text, values)
      @asked = values
      self
    end

    def column_values(_) = []
  end

  test('jobs of a flow may have texts as keys, as jobs of add_jobs') do
    db = Connection.new
    jobs = [{ 'key' => 'a', 'identifier' => 'x' },
            { 'identifier' => 'y', 'after' => [:a, '7', '010', 'b'] }]
    PgPulse.add_flow(db, jobs)
    # What is no key and no id the server refuses, with a sentence.
    assert_equal [{ 'key' => 'a', 'identifier' => 'x', 'after' => [] },
                  { 'identifier' => 'y', 'after' => ['a', 7, 10, 'b'] }],
                 JSON.parse(db.asked.first)
  end

  test('seconds have no exponent, which no interval has') do
    assert_equal '0.000000 seconds', PgPulse::Statement.parameter('interval', 1e-7, 'timeout')
  end

  test('a list has its nulls') do
    assert_equal '{"a",NULL,"\\"b"}', PgPulse::Statement.array(['a', nil, '"b'])
  end

  test('a result may be false') do
    db = Connection.new
    job = PgPulse::Job.new(nil, { 'id' => '1', 'job' => { 'id' => '1' } }, '{}')
    job.complete(db, false)
    assert_equal 'false', db.asked.last
  end

  test('what is no list of tasks is refused at once') do
    { [] => /no class with perform/,
      [OrderMail, OrderMail] => /the task order_mail has two classes/,
      [OrderMail] => /a pulse-worker starts this program.*'ruby/ }.each do |tasks, message|
      assert_match message, assert_raises(PgPulse::NotStarted) { PgPulse.work(tasks) }.message
    end
  end

  test('a descriptor that is no socket of a worker is refused') do
    { '99' => /descriptor 99 is no socket/, '0' => /descriptor 0 is no socket/,
      'taken' => /a pulse-worker runs jobs in this process already/ }.each do |given, message|
      ENV['PULSE_FD'] = given
      assert_match message, assert_raises(PgPulse::NotStarted) { PgPulse.work([OrderMail]) }.message
    ensure
      ENV.delete('PULSE_FD')
    end
  end
end
