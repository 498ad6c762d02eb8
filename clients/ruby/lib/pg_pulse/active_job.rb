# frozen_string_literal: true

require 'active_job'
require 'active_record'

module PgPulse
  # Jobs of Active Job: the payload is what Active Job serialises.
  module ActiveJobs
    TASK = 'active_job'

    # A task of Active Job: of all classes, or of those that name one of their own by pulse_options.
    Performer = Struct.new(:identifier, :takes) do
      def run(job)
        # Executions before the add count, and so do attempts that have ended with a program.
        executions = job.payload['executions'].to_i + job.attempt - 1
        data = job.payload.merge('executions' => executions, 'provider_job_id' => job.id)
        value = ::ActiveJob::Base.execute(data)
        value if value.is_a?(Ending)
      end
    end

    module_function

    def tasks
      options = [{ task: TASK }, *::ActiveJob::Base.descendants.map(&:pulse_options)]
      named = options.select { |each| each[:task] }.uniq { |each| each[:task] }
      named.map { |each| Performer.new(*each.values_at(:task, :takes)) }
    end

    # The running job of pg_pulse, if this job of Active Job is the one that runs.
    def running(active_job)
      job = PgPulse.job
      job if job && job.payload.is_a?(Hash) && job.payload['job_id'] == active_job.job_id
    end

    # Of retry_on and retry_job: the attempt ends, and the next has the counts of Active Job.
    def retry(job, active_job, timestamp)
      error = $ERROR_INFO || Failure.new('the job has called retry_job')
      seconds = [timestamp.to_f - Time.now.to_f, 0].max
      before = active_job.executions - job.attempt
      payload = active_job.serialize.merge('executions' => before)
      job.ending = Ending.new({ retry_in: seconds, payload: }, error)
    end
  end

  ::ActiveSupport.on_load(:active_job) { extend Options }
  # The attempts of retry_on are the last word.
  ::ActiveSupport::Notifications.subscribe('retry_stopped.active_job') do |*, told|
    job = ActiveJobs.running(told[:job])
    job.ending = Ending.new({ retry: false }, told[:error]) if job
  end
end

module ActiveJob
  module QueueAdapters
    # config.active_job.queue_adapter = :pg_pulse
    class PgPulseAdapter
      # `queues`: names of queue_as that are queues of pg_pulse. Queues of pg_pulse are limits: a
      # queue `default` runs one job at a time, unless pulse.set_queue() allows more.
      # `database`: the class of Active Record whose transaction adds the jobs.
      def initialize(queues: [], database: nil)
        @queues = queues
        @database = database
      end

      # A job is a row of the caller's transaction.
      def enqueue_after_transaction_commit? = false

      def enqueue(job) = enqueue_at(job, nil)

      def enqueue_at(job, timestamp)
        running = PgPulse::ActiveJobs.running(job)
        return PgPulse::ActiveJobs.retry(running, job, timestamp) if running

        job.provider_job_id = PgPulse.add_jobs(database, [spec(job, timestamp)]).first[:id]
      end

      # Of perform_all_later.
      def enqueue_all(jobs)
        rows = PgPulse.add_jobs(database, jobs.map { |job| spec(job, job.scheduled_at) })
        jobs.zip(rows) do |job, row|
          job.provider_job_id = row[:id]
          job.successfully_enqueued = true
        end
        rows.size
      end

      private

      def database = @database || ::ActiveRecord::Base

      def spec(job, timestamp)
        queue_name = job.queue_name if @queues.include?(job.queue_name)
        { identifier: job.class.pulse_options.fetch(:task, PgPulse::ActiveJobs::TASK),
          payload: job.serialize, queue_name:, run_at: timestamp && Time.at(timestamp.to_f),
          priority: job.priority }
      end
    end
  end
end
