# frozen_string_literal: true

require 'English'
require 'monitor'
require 'socket'

module PgPulse
  # The program mode: lines of JSON to and from the worker that has started this program
  # (docs/programs.md). One socket, a thread for each job.
  #
  # Always holds: a job in @running has no answer yet; each job gets one answer, and no line after
  # the answer; @lock guards @running and what is written.
  class Program
    PROTOCOL = 1
    # A line of the program, as the worker bounds it.
    MAX_LINE = 1024 * 1024

    def initialize(socket, tasks)
      @socket = socket
      @socket.close_on_exec = true
      @socket.set_encoding(Encoding::UTF_8)
      @tasks = tasks
      @running = {}
      @lock = Monitor.new
      @idle = @lock.new_cond
      @process = Process.pid
    end

    # Speaks first, then runs jobs until the worker sends no more; returns when all have ended.
    def serve(takes:, name:)
      tasks = @tasks.transform_values { |task| { takes: task.takes }.compact }
      write(JSON.generate({ hello: { protocol: PROTOCOL, takes:, tasks:, name: } }))
      while (line = @socket.gets)
        handle(line)
      end
      @lock.synchronize { @idle.wait_until { @running.empty? } }
    rescue Exception => e # rubocop:disable Lint/RescueException
      leave(e) unless @running.empty?
      raise
    end

    # Writes what a job says of itself; members are JSON.
    def tell(job, members)
      text = line(job, members, "the #{members.keys.first}")
      @lock.synchronize { write(text) unless job.over || Process.pid != @process }
    end

    private

    # At once: of threads that end with Ruby `ensure` runs, where a transaction of pg commits what
    # the transaction has so far.
    def leave(error)
      exit!(error.status) if error.is_a?(SystemExit)
      if error.is_a?(SignalException)
        trap(error.signo, 'SYSTEM_DEFAULT')
        Process.kill(error.signo, @process) && sleep
      end
      $stderr.write(error.full_message(highlight: false))
      exit!(1)
    end

    def handle(line)
      message = Document.parse(line)
      return start(message, line) unless message.key?('cancel')

      job = @lock.synchronize { @running[message['cancel']] }
      # The claim is over because the handler's own transaction has completed the job, and the
      # handler may go on.
      return answer_done(job) if message['reason'] == 'lost' && job&.completed?

      job&.cancel(message['reason'], message['grace_ms'])
    rescue JSON::ParserError, SystemStackError => e
      refuse(line, e)
    end

    # The server takes payloads that Ruby does not, as those with half of a surrogate pair.
    def refuse(line, error)
      id = Document.member_text(line, 'id') or raise error
      # Behind the reason stands all of the rest of the line.
      reason = Outcome.readable(error.message).split(" at '").first
      text = JSON.generate("the payload cannot be read: #{reason}")
      @lock.synchronize { write("{\"id\":#{id},\"error\":#{text},\"retry\":false}") }
    end

    def start(message, line)
      job = Job.new(self, message, line)
      @lock.synchronize { @running[job.key] = job }
      Thread.new { run(job, @tasks.fetch(message['task'])) }.report_on_exception = false
    end

    # A SystemExit ends the program, as everywhere in Ruby; all else ends the job.
    def run(job, task)
      answer = JobThreads.run(job) { PgPulse.wrap { answer_of(job, task) } }
    ensure
      answer ||= line(job, Outcome::THREAD_ENDED, 'the answer')
      finish(job, answer) unless $ERROR_INFO.is_a?(SystemExit)
    end

    def answer_of(job, task)
      line(job, Outcome.of_value(job, task.run(job)), "the answer of #{job.identifier}")
    rescue SystemExit
      raise
    rescue Exception => e # rubocop:disable Lint/RescueException
      answer_of_error(job, e)
    end

    # An end that is too large is an error in its turn.
    def answer_of_error(job, error)
      line(job, Outcome.of_error(job, error), "the answer of #{job.identifier}")
    rescue NotJson => e
      line(job, Outcome.of_error(job, e), 'the answer')
    end

    def line(job, members, what)
      named = { id: JSON.generate(job.key), **members }.map { |name, json| "\"#{name}\":#{json}" }
      text = "{#{named.join(',')}}"
      return text if text.bytesize < MAX_LINE

      raise NotJson, "#{what} has #{text.bytesize} bytes, and a line has at most #{MAX_LINE}: " \
                     'store it elsewhere, and give its place'
    end

    # A process that the handler has forked, and that goes on as the handler, has no answer to give.
    def finish(job, answer)
      exit! if Process.pid != @process
      @lock.synchronize do
        write(answer) unless job.over
        job.over = true
        @running.delete(job.key)
        @idle.signal
      end
    end

    def answer_done(job)
      @lock.synchronize do
        write(line(job, { done: 'true' }, 'the answer')) unless job.over
        job.over = true
      end
    end

    def write(line)
      @socket.write("#{line}\n")
    end
  end
end
