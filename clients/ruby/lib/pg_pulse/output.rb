# frozen_string_literal: true

require 'logger'
require 'stringio'

module PgPulse
  # The threads of one job: those that a handler starts belong to the group of the handler's thread.
  class JobThreads < ThreadGroup
    attr_reader :job

    # Runs the block as the handler of the job.
    def self.run(job)
      before = Thread.current.group
      new(job).add(Thread.current)
      yield
    ensure
      job.print_rest
      before.add(Thread.current)
    end

    def initialize(job)
      super()
      @job = job
    end
  end

  # The job whose handler runs in this thread; nil outside of handlers.
  def self.job
    group = Thread.current.group
    group.job if group.is_a?(JobThreads) && !group.job.over
  end

  # Routes what a handler prints and logs to its job, however many jobs run at once. Outside of
  # handlers all is printed as ever.
  class Output < StringIO
    def self.route
      return if $stdout.is_a?(Output)

      $stdout = new($stdout, 'info')
      $stderr = new($stderr, 'warning')
      ::Logger.prepend(Logs)
    end

    def initialize(plain, level)
      super()
      @plain = plain.tap(&:flush)
      plain.sync = true
      @level = level
    end

    def write(*texts)
      job = PgPulse.job or return @plain.write(*texts)
      # Texts of several encodings cannot be joined as they are.
      text = texts.map { |each| Outcome.readable(each.to_s) }.join
      job.print(text, @level)
      text.bytesize
    end

    def to_io = @plain
  end

  # What any Logger, as Rails.logger, is told within a handler: nothing is left for its own device.
  module Logs
    LEVELS = {
      'DEBUG' => 'debug', 'WARN' => 'warning', 'ERROR' => 'error', 'FATAL' => 'error'
    }.freeze

    private

    def format_message(severity, _time, _progname, message)
      job = PgPulse.job or return super
      tags = formatter.tags_text if formatter.respond_to?(:tags_text)
      message = Outcome.error_text(message) if message.is_a?(Exception)
      job.log("#{tags}#{message}", level: LEVELS.fetch(severity, 'info'))
      ''
    end
  end
end
