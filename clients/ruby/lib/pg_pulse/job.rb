# frozen_string_literal: true

module PgPulse
  # Says that a job is to end. `reason`: cancelled, timeout, stall, unreachable, lost or shutdown.
  class JobCancelled < StandardError
    attr_reader :reason, :grace_ms

    def initialize(reason, grace_ms)
      super("the job is to end: #{reason}")
      @reason = reason
      @grace_ms = grace_ms
    end
  end

  # The job that a handler gets. A port carries what the job says: the lines of a program, or the
  # calls of a test.
  class Job
    MEMBERS = %i[attempt crashes database flags identifier job_key last_error max_attempts
                 priority queue_name recovered token traceparent worker_id worker_name].freeze
    TIMES = %i[created_at run_at scheduled_for].freeze
    # Whole lines, or so much of a line that has no end.
    PRINTED = /\A(?:.*\n|.{8192,})/m
    MAX_LOG = 8 * 1024
    MAX_MESSAGE = 1024

    MEMBERS.each { |member| define_method(member) { @document[member.to_s] } }
    TIMES.each do |member|
      define_method(member) { @document[member.to_s]&.then { |text| Time.iso8601(text) } }
    end

    # `key` names the job among those of the program, as the worker has written it. `cancelled` is a
    # JobCancelled once the job is to end.
    attr_reader :key, :id, :payload, :cancelled
    # No line counts any more, and how the attempt ends, whatever the handler returns: an Ending.
    attr_accessor :over, :ending

    def initialize(port, message, text)
      @port = port
      @document = message['job']
      @key = message['id']
      @id = @document['id'].to_s
      @payload = message['payload']
      @text = text
      @unfinished = Hash.new { |all, level| all[level] = +'' }
    end

    def completed? = @completed

    def cancel(reason, grace_ms)
      @cancelled ||= JobCancelled.new(reason, grace_ms)
    end

    def raise_if_cancelled
      raise @cancelled if @cancelled
    end

    # How the jobs that this one has waited for have ended; ids are texts, as everywhere.
    def parents = @document['parents']&.map { |each| { **each, 'id' => each['id'].to_s } }

    # The payload as the producer has spelled it, with every digit.
    def payload_text = Document.member_text(@text, 'payload')

    # The checkpoint of an earlier attempt; nil without one.
    def last_checkpoint = @document['checkpoint']

    def last_checkpoint_text
      Document.member_text(Document.member_text(@text, 'job'), 'checkpoint')
    end

    # Reports progress: a fraction from 0 to 1, and what is being done.
    def progress(fraction, message: nil, stage: nil)
      if fraction && !(0..1).cover?(fraction = Float(fraction))
        raise RangeError, "progress is a fraction from 0 to 1, and not #{fraction}"
      end

      message, stage = [message, stage].map { |text| text && Outcome.readable(text.to_s) }
      tell({ progress: fraction, message: message&.slice(0, MAX_MESSAGE),
             stage: stage&.slice(0, MAX_MESSAGE) }.compact)
    end

    # Stores a value that the next attempt gets as last_checkpoint.
    def checkpoint(value) = tell({ checkpoint: value })

    # Writes a line to the log of the worker, with this job. Level: debug, info, warning or error.
    def log(text, level: 'info')
      tell({ log: Outcome.readable(text.to_s)[0, MAX_LOG], level: })
    end

    # Logs what is printed line by line; the beginning of a line waits for the line's end.
    def print(text, level)
      @unfinished[level] << text
      @unfinished[level].slice!(PRINTED)&.each_line(chomp: true) { |line| log(line, level:) }
    end

    # The handler has ended, and so have its lines.
    def print_rest
      @unfinished.each { |level, rest| print("\n", level) unless rest.empty? }
    end

    # The end of an attempt that is given back, to run again in so many seconds: return it.
    def snooze(seconds, **checkpoint)
      Ending.new({ snooze: Outcome.seconds(seconds, 'the delay'), **checkpoint })
    end

    # Ties the connection's transaction to this claim: COMMIT fails if the claim is lost by then.
    def fence(db)
      text = 'SELECT NULL FROM pulse.fence($1::text::bigint, $2::text::bigint)'
      Database.ask(db, text, [id, token])
    end

    # Completes the job in the connection's transaction: the end commits or not, as its rows do.
    def complete(db, result = nil)
      text = 'SELECT NULL FROM pulse.complete($1::text::bigint, $2::text::bigint, $3::text::json)'
      Database.ask(db, text, [id, token, result.nil? ? nil : Document.encode(result, 'the result')])
      @completed = true
    end

    private

    def tell(members)
      @port.tell(self, members.to_h { |name, value| [name, Document.encode(value, "the #{name}")] })
    end
  end
end
