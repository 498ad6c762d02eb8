# frozen_string_literal: true

# A program of the library for Ruby whose handlers do what the payload says. The file that TOLD_FILE
# names gets a line for each event of a handler.
require 'logger'
require 'pg'
require 'rbconfig'
require "#{ENV.fetch('CLIENTS')}/ruby/lib/pg_pulse"

def tell(*words)
  File.write(ENV.fetch('TOLD_FILE'), "#{words.join(' ')}\n", mode: 'a')
end

def pause = IO.select(nil, nil, nil, 0.02)

def wait_for_gate(gate, job = nil)
  until File.exist?(gate)
    job&.raise_if_cancelled
    pause
  end
end

def circle
  value = { name: 'circle' }
  value.merge!(self: value)
end

# An error whose text cannot be had.
class Hostile < StandardError
  def message = raise('no words')
  alias detailed_message message
end

LOGGER = Logger.new($stderr)

# In one transaction: the effect, and the end of the job. `dies` says where the program is killed in
# the first attempt.
def complete_once(dies, gate, job)
  strike = lambda do |place|
    Process.kill('KILL', Process.pid) && sleep if dies == place && job.attempt == 1
  end
  db = PG.connect
  db.exec('BEGIN')
  db.exec_params('INSERT INTO effect VALUES ($1)', [job.id])
  strike['before the end']
  job.complete(db, { by: 'the handler' })
  strike['before the commit']
  db.exec(dies == 'never commits' ? 'ROLLBACK' : 'COMMIT')
  strike['after the commit']
  job.progress(0.5) && wait_for_gate(gate) if gate
ensure
  db&.close
end

# The first attempt never ends its transaction.
def hold(job)
  return if job.attempt > 1

  PG.connect.transaction do |db|
    db.exec_params('INSERT INTO effect VALUES ($1)', [job.id])
    tell('held', job.id, Process.pid)
    Thread.stop
  end
end

def report(job)
  job.progress(0.5, message: 'half', stage: 'copy')
  job.checkpoint({ at: job.attempt })
  raise 'once more' if job.attempt == 1

  job.last_checkpoint
end

# Each way to print.
WAYS = [
  ->(text) { puts text }, ->(text) { print text, "\n" }, ->(text) { LOGGER.info(text) },
  ->(text) { Thread.new { $stdout << text << "\n" }.join },
  ->(text) { Fiber.new { warn text }.resume }
].freeze

def print_lines(gate, count, job)
  wait_for_gate(gate)
  1.upto(count) do |i|
    text = "line #{i} of job #{job.id}"
    WAYS[i - 1].call(text)
    sleep job.id.to_i % 3 / 1000.0
  end
end

# Behind ten calls.
def stack(text, calls = 10)
  calls.zero? ? raise(text) : stack(text, calls - 1)
end

def log_stacks(count)
  1.upto(count) do |n|
    stack("stack #{n}")
  rescue StandardError => e
    LOGGER.error(e)
  end
  puts 'behind the stacks'
end

def print_behind_the_end(job)
  pause while PgPulse.job
  job.progress(1)
  puts 'behind the end'
end

# The child goes on as the handler, and has no answer to give.
def fork_on
  child = fork
  Process.wait(child) if child
  child ? 'the parent' : 'the child'
end

DEEDS = {
  'echo' => ->(payload, _) { payload['value'] },
  'nothing' => ->(*) {},
  'large number' => ->(*) { 2**60 },
  'time' => ->(*) { Time.at(0) },
  'exact' => ->(*) { PgPulse.json("{\"n\": 9007199254740993,\n\"f\": 1.10}") },
  'nan' => ->(*) { Float::NAN },
  'object' => ->(*) { Object.new },
  'bytes' => ->(*) { "\xff" },
  'large' => ->(*) { 'x' * (20 * 1024 * 1024) },
  'circle' => ->(*) { circle },
  'large checkpoint' => ->(_, job) { job.checkpoint('c' * (2 << 20)) },
  'snooze circle' => ->(_, job) { job.snooze(0, checkpoint: circle) },
  'large rest' => ->(*) { raise PgPulse::Failure.new('a part is left', payload: 'z' * (2 << 20)) },
  'ask' => lambda { |_, job|
    { id: job.id, token: job.token, attempt: job.attempt, last: job.last_checkpoint, at: job.run_at,
      text: job.payload_text, queue: job.queue_name, key: job.job_key,
      same: PgPulse.job.equal?(job) }
  },
  'raise' => lambda { |*|
    begin
      raise 'of this'
    rescue StandardError
      raise ArgumentError, 'it broke'
    end
  },
  'raise a text' => ->(*) { raise 'only a text' },
  'raise nil' => ->(*) { raise nil },
  'raise hostile' => ->(*) { raise Hostile },
  'raise bytes' => ->(*) { raise "b\xff\0d" },
  'raise large' => ->(*) { raise 'y' * (3 << 20) },
  'no memory' => ->(*) { raise NoMemoryError, 'none' },
  'overflow' => ->(*) { DEEDS['overflow'].call },
  'throw' => ->(*) { throw :nowhere },
  'end the thread' => ->(*) { Thread.exit },
  'no such deed' => ->(payload, _) { payload.fetch('deed') },
  'for good' => ->(*) { raise PgPulse::Failure.new('no such address', retry: false) },
  'later' => ->(*) { raise PgPulse::Failure.new('not now', retry_in: 3600) },
  'rest' => ->(*) { raise PgPulse::Failure.new('left', payload: { do: 'echo', value: 'rest' }) },
  'snooze' => ->(_, job) { job.last_checkpoint || job.snooze(1e-7, checkpoint: { seen: true }) },
  'report' => ->(_, job) { report(job) },
  'gate' => ->(payload, job) { wait_for_gate(payload['gate'], job) },
  'obey' => lambda { |_, job|
    pause until job.cancelled
    tell('told', job.id, job.cancelled.reason, job.cancelled.grace_ms)
    job.raise_if_cancelled
  },
  'never' => ->(*) { sleep },
  'block' => ->(payload, _) { nil until File.exist?(payload['gate']) },
  'spawn' => lambda { |*|
    fds = IO.popen(%w[ls -l /proc/self/fd], &:read)
    spawn('tail', '-f', '/dev/null', pgroup: true)
    { sockets: fds.scan('-> socket:').size, descriptor: ENV.fetch('PULSE_FD', nil) }
  },
  'spawn itself' => ->(*) { IO.popen([RbConfig.ruby, $PROGRAM_NAME], err: %i[child out], &:read) },
  'fork' => ->(*) { fork_on },
  'after its end' => ->(_, job) { Thread.new { print_behind_the_end(job) } && nil },
  'exit' => ->(*) { exit 7 },
  'hold' => ->(_, job) { hold(job) },
  'complete' => ->(payload, job) { complete_once(*payload.values_at('dies', 'gate'), job) && nil },
  'beyond all' => ->(_, job) { job.progress(50) },
  'stacks' => ->(payload, _) { log_stacks(payload['count']) },
  'lines' => ->(payload, job) { print_lines(payload['gate'], payload['count'], job) && nil }
}.freeze

# The deed of the payload.
class Act
  include PgPulse::Task

  def perform(payload)
    tell('began', job.id, job.attempt, Process.pid)
    DEEDS.fetch(payload['do']).call(payload, job)
  end
end

# Two at once.
class Few
  include PgPulse::Task
  pulse_options takes: 2
  def perform(payload) = wait_for_gate(payload['gate'])
end

# Its payload is an array.
class List
  include PgPulse::Task
  def perform(payload) = payload.size
end

puts 'started outside of jobs'
begin
  PgPulse.work(takes: 30, name: 'ruby')
rescue PgPulse::NotStarted => e
  abort e.message
end
tell('ended')
