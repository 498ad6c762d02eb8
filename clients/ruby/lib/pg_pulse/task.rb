# frozen_string_literal: true

module PgPulse
  MAX_TAKES = 10_000

  # A number of jobs, as the worker takes it.
  def self.jobs_at_once(takes)
    return takes if takes.is_a?(Integer) && takes.between?(1, MAX_TAKES)

    raise ArgumentError, "takes is #{takes}, and no number of jobs from 1 to 10,000"
  end

  # What a class says of its jobs: `task`, the name, `takes`, so many jobs at once in one program,
  # and `unique`, {for:, by:, states:} of adds without a `unique` of their own.
  module Options
    def pulse_options(task: nil, takes: nil, unique: nil)
      PgPulse.jobs_at_once(takes) if takes
      @pulse_options = { **@pulse_options.to_h, **{ task:, takes:, unique: }.compact }
      inherited = superclass.respond_to?(:pulse_options) ? superclass.pulse_options : {}
      { **inherited, **@pulse_options }
    end
  end

  # A class with `perform(payload)` that includes this module is a task. `job` is the running job.
  module Task
    attr_accessor :job

    @included = []

    def self.included(base)
      super
      base.extend(Options, Methods)
      @included << base
    end

    # Each class that has a handler.
    def self.classes(among = @included)
      among.select { |each| each.method_defined?(:perform) } +
        among.flat_map { |each| classes(each.subclasses) }
    end

    # Methods of the class.
    module Methods
      # The name of the task: that of the options, else Shop::OrderMail is shop/order_mail.
      def identifier
        pulse_options[:task] ||
          name.gsub('::', '/').gsub(/([a-z\d])([A-Z])/, '\1_\2').downcase
      end

      def takes = pulse_options[:takes]

      # Adds a job of this task in the caller's transaction.
      def add(db, payload = {}, **options)
        PgPulse.add_job(db, identifier, payload, **pulse_options.slice(:unique), **options)
      end

      def run(job)
        handler = new
        handler.job = job
        handler.perform(job.payload)
      end
    end
  end
end
