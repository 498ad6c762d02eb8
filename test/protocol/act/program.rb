# frozen_string_literal: true

# The task `act` as a program of the library for Ruby. See ../README.md.
require 'open3'
require_relative '../../../clients/ruby/lib/pg_pulse'

FILE = ENV.fetch('ACT_FILE')

# The steps of a payload. Each gets its value as the text of the payload, so that no digit is lost.
class Act
  include PgPulse::Task

  def perform(_)
    all(job.payload_text)
    @end || @result
  end

  private

  # Pairs of a kind and a value, each value as the text that it is.
  def steps(text)
    found = []
    depth = 0
    kind = first = before = nil
    text.scan(PgPulse::Document::TOKEN) do |piece|
      at = Regexp.last_match.begin(0)
      depth -= 1 if ['}', ']'].include?(piece)
      found << [kind, text[first...at].strip] if piece == '}' && depth == 1
      kind, first = JSON.parse(before), at + 1 if piece == ':' && depth == 2
      depth += 1 if ['{', '['].include?(piece)
      before = piece
    end
    found
  end

  def all(text)
    steps(text).each { |kind, value| send("do_#{kind}", value) unless @end }
  end

  def until_over(seconds)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    until yield || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      job.raise_if_cancelled
      sleep 0.02
    end
    # Also of work that was told while it slept, and whose gate is open by now.
    job.raise_if_cancelled
  end

  def do_write(value)
    File.write(FILE, "{\"job\": \"#{job.id}\", \"attempt\": #{job.attempt}, \"checkpoint\": " \
                     "#{job.last_checkpoint_text}, \"wrote\": #{value}}\n", mode: 'a')
  end

  def do_wait(value) = until_over(Float(value)) { false }
  def do_until(value) = until_over(120) { File.exist?("#{FILE}.#{JSON.parse(value)}") }

  def do_spin(value)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + Float(value)
    nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
  end

  def do_progress(value) = job.progress(Float(value))
  def do_checkpoint(value) = job.checkpoint(PgPulse.json(value))
  def do_result(value) = @result = PgPulse.json(value)

  def do_add(value)
    Open3.capture2('psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-v', "payload=#{value}",
                   stdin_data: "SELECT FROM pulse.add_job('act', :'payload'::json)")
  end

  def do_fail(value) = raise(JSON.parse(value))
  def do_fail_for_good(value) = raise(PgPulse::Failure.new(JSON.parse(value), retry: false))
  def do_garble(value) = raise([JSON.parse(value)].pack('H*'))
  def do_rest(value) = raise(PgPulse::Failure.new('not all was done', payload: PgPulse.json(value)))
  def do_snooze(value) = @end = job.snooze(Float(value))
  def do_exit(value) = exit(Integer(value))

  def do_signal(value)
    Process.kill(JSON.parse(value), Process.pid)
    sleep 120
  end

  def do_once(value)
    File.open("#{FILE}.ran.#{job.id}", File::CREAT | File::EXCL).close
    all(value)
  rescue Errno::EEXIST
    nil
  end
end

PgPulse.work(takes: 2, name: 'kit')
