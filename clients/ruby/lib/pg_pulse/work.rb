# frozen_string_literal: true

module PgPulse
  # Why a program runs no jobs, and how it is meant to be started.
  class NotStarted < StandardError; end

  # So many connections has the pool of Active Record, unless the application says otherwise.
  TAKES = 5
  # In place of the descriptor, for what the program starts.
  TAKEN = 'taken'

  class << self
    # Runs the jobs of these tasks until the worker is to leave. `takes`: so many jobs at once, each
    # in a thread; `name`: for the log.
    def work(tasks = self.tasks, takes: TAKES, name: nil, command: "ruby #{$PROGRAM_NAME}")
      jobs_at_once(takes)
      by_name = Statement.list(tasks).group_by(&:identifier)
      twice, several = by_name.find { |_, same| same.size > 1 }
      raise NotStarted, "the task #{twice} has two classes: #{several.join(', ')}" if twice
      raise NotStarted, 'no class with perform includes PgPulse::Task' if tasks.empty?

      socket = take_socket(command)
      Output.route
      Program.new(socket, by_name.transform_values(&:first)).serve(takes:, name: name || command)
    end

    # All classes with a handler, and the jobs of Active Job.
    def tasks
      Task.classes + (defined?(ActiveJobs) ? ActiveJobs.tasks : [])
    end

    # As Rails wraps a request: connections go back to their pool.
    def wrap(&handler)
      rails = ::Rails.application&.executor if defined?(::Rails.application)
      rails ? rails.wrap(&handler) : yield
    ensure
      if defined?(::ActiveRecord::Base)
        ::ActiveRecord::Base.connection_handler.clear_active_connections!
      end
    end

    private

    def take_socket(command)
      given = ENV.fetch('PULSE_FD') do
        raise NotStarted, 'a pulse-worker starts this program, and runs its jobs here: ' \
                          "pulse-worker --database NAME --program '#{command}'"
      end
      if given == TAKEN
        raise NotStarted, 'a pulse-worker runs jobs in this process already, or in the one that ' \
                          'has started this process: another program is another --program'
      end
      ENV['PULSE_FD'] = TAKEN
      socket_of(Integer(given))
    end

    def socket_of(descriptor)
      Socket.for_fd(descriptor)
    rescue SystemCallError
      raise NotStarted, "descriptor #{descriptor} is no socket of a pulse-worker: what stands " \
                        'between pulse-worker and this program hands no descriptors on'
    end
  end
end
