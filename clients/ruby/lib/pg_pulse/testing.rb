# frozen_string_literal: true

require 'delegate'
require_relative '../pg_pulse'

module PgPulse
  # Tests with the real handlers: a transaction in which jobs are added and run, and that is rolled
  # back. The extension pg_pulse_tap claims the jobs and moves time.
  class Testing
    # One attempt that run_jobs has run; `state` is the job's state after the attempt.
    Attempt = Struct.new(:id, :task, :attempt, :payload, :state, :result, :error, :logs)
    MAX_JOBS = 1000
    # What the handler says of its transaction is not so.
    UNCOMMITTED = { error: '"its transaction did not commit"' }.freeze

    # A connection of pg whose transactions are savepoints of the test's transaction.
    class Nested < SimpleDelegator
      COMMENT = %r{--[^\n]*|/\*.*?\*/}m
      FIRST = /\A(?:\s|#{COMMENT})*/
      BEGINS = /#{FIRST}(?:begin|start\s+transaction)\b/i
      COMMITS = /#{FIRST}(?:commit|end)\b/i
      ROLLS_BACK = /#{FIRST}(?:rollback|abort)\b(?!\s+(?:(?:work|transaction)\s+)?to\b)/i
      # A semicolon within these ends no statement.
      WHOLE = /\be'(?:[^'\\]|\\.|'')*'|'[^']*'|"[^"]*"|(\$\w*\$).*?\1|begin\s+atomic\b.*?\bend\b|
               #{COMMENT}/mix
      STATEMENT = /(?:(?>#{WHOLE})|[^;])+/m

      # The result of the last statement.
      def exec(text, &)
        statements = statements_of(text)
        return super unless statements.any? { |each| nested(each) }

        *others, last = statements
        others.each { |each| exec(each) }
        act = nested(last)
        act ? act.call.then { |result| block_given? ? yield(result) : result } : super(last, &)
      end

      def exec_params(text, ...) = nested(text)&.call || super

      %i[query async_exec async_query sync_exec].each { |name| alias_method name, :exec }
      %i[async_exec_params sync_exec_params].each { |name| alias_method name, :exec_params }

      # What the block has begun and not ended goes with the block.
      def transaction
        exec('BEGIN')
        depth = @depth
        begin
          yield(self).tap do
            @depth = depth
            exec('COMMIT')
          end
        rescue Exception # rubocop:disable Lint/RescueException
          @depth = depth
          exec('ROLLBACK')
          raise
        end
      end

      private

      def statements_of(text)
        statements = []
        text.scan(STATEMENT) { statements << $LAST_MATCH_INFO[0] }
        statements.grep_v(/#{FIRST}\z/)
      end

      # What a statement of transactions is within the transaction of the test; nil for others.
      def nested(statement)
        case statement
        when BEGINS then -> { __getobj__.exec("SAVEPOINT #{savepoint(+1)}") }
        when COMMITS then -> { commit }
        when ROLLS_BACK then -> { roll_back }
        end
      end

      def roll_back
        __getobj__.exec("ROLLBACK TO SAVEPOINT #{savepoint}; RELEASE #{savepoint(-1)}")
      end

      def commit
        __getobj__.exec('SELECT pulse_tap.check_constraints()')
        __getobj__.exec("RELEASE SAVEPOINT #{savepoint(-1)}")
      end

      # The innermost savepoint, before or after so many more.
      def savepoint(more = 0)
        @depth = @depth.to_i + more
        "pulse_test_#{@depth + (more.negative? ? 1 : 0)}"
      end
    end

    # The connection of the application, whose transactions are savepoints.
    attr_reader :db

    # Runs the block in a transaction that is rolled back. `database`: a connection of pg, or a
    # connection or a class of Active Record.
    def self.rolled_back(database, &test)
      return rolled_back_in_pg(database, &test) unless database.respond_to?(:transaction) &&
                                                       !database.respond_to?(:exec_params)

      result = nil
      database.transaction(joinable: false, requires_new: true) do
        result = new(database).tap(&:freeze_time).then(&test)
        raise ::ActiveRecord::Rollback
      end
      result
    end

    def self.rolled_back_in_pg(connection, &test)
      connection.exec('BEGIN')
      new(Nested.new(connection)).tap(&:freeze_time).then(&test)
    ensure
      connection.exec('ROLLBACK')
    end
    private_class_method :rolled_back_in_pg

    def initialize(database)
      @db = database
      Output.route
    end

    def freeze_time
      ask('SELECT NULL FROM pulse_tap.freeze()')
    rescue StandardError => e
      raise unless e.message.include?('pulse_tap')

      raise Error.new('the database of the tests has no extension pg_pulse_tap',
                      hint: 'CREATE EXTENSION pg_pulse_tap CASCADE')
    end

    # Runs the due jobs of these tasks, one after the other, until none is due. Returns an Attempt
    # for each attempt.
    def run_jobs(*tasks, max: MAX_JOBS)
      tasks = (tasks.empty? ? PgPulse.tasks : tasks.flatten).to_h { |task| [task.identifier, task] }
      ask('SELECT NULL FROM pulse_tap.sweep_due()')
      attempts = []
      while (attempt = run_next(tasks))
        attempts << attempt
        raise "run_jobs has run #{max} jobs: does a job add itself again?" if attempts.size > max
      end
      attempts
    end

    # Moves time: '1 hour'.
    def travel(how_far) = ask('SELECT NULL FROM pulse_tap.travel($1::text::interval)', [how_far])

    # What a job says while it runs.
    def tell(_job, members) = @told << members.transform_values { |json| Json.new(json) }

    private

    def ask(text, values = []) = Database.ask(@db, text, values)

    def run_next(tasks)
      job = claim(tasks.keys) or return
      @told = []
      members = outcome_of(job, tasks.fetch(job.identifier))
      members = UNCOMMITTED if members[:done] && held?(job)
      job.over = true
      report(job) unless members[:done]
      state = finish(job, **members)
      logs = @told.filter_map { |told| Document.parse(told[:log].text) if told[:log] }
      ends = members.values_at(:result, :error).map { |text| text && Document.parse(text) }
      Attempt.new(job.id, job.identifier, job.attempt, job.payload, state, *ends, logs)
    end

    def claim(identifiers)
      text, = ask('SELECT row_to_json(c)::text FROM pulse_tap.claim_next($1::text::text[]) AS c
                   WHERE c.id IS NOT NULL', [Statement.array(identifiers)])
      return unless text

      row = Document.parse(text)
      job = { **row, **row.slice('id', 'token').transform_values(&:to_s),
              'attempt' => row['attempts'] }
      whole = "{\"payload\":#{Document.member_text(text, 'payload')},\"job\":#{text}}"
      Job.new(self, { 'id' => job['id'], 'payload' => row['payload'], 'job' => job }, whole)
    end

    # The rows of a handler that raises are gone, as those of a transaction of its own.
    def outcome_of(job, task)
      JobThreads.run(job) { savepoint { Outcome.of_value(job, task.run(job)) } }
    rescue SystemExit, SignalException
      raise
    rescue Exception => e # rubocop:disable Lint/RescueException
      Outcome.of_error(job, e)
    end

    # The claim is over where the handler's transaction has ended it.
    def held?(job)
      text = 'SELECT NULL FROM pulse.held_job($1::text::bigint, $2::text::bigint)'
      savepoint { ask(text, [job.id, job.token]) }
      true
    rescue ClaimLost
      false
    end

    def savepoint(&)
      @db.is_a?(Nested) ? @db.transaction(&) : @db.transaction(requires_new: true, &)
    end

    def report(job)
      @told.reject { |told| told[:log] }.each do |told|
        values = told.values_at(:progress, :message, :stage, :checkpoint).map { |json| json&.text }
        values[1..2] = values[1..2].map { |text| text && Document.parse(text) }
        ask('SELECT NULL FROM pulse.progress($1::text::bigint, $2::text::bigint,
          fraction => $3::text::float8, message => $4, stage => $5, checkpoint => $6::text::json)',
            [job.id, job.token, *values])
      end
    end

    # Reports the end as pulse-worker does; returns the state of the job.
    def finish(job, result: nil, error: nil, retry_in: nil, payload: nil, snooze: nil,
               checkpoint: nil, done: nil, **more)
      return 'completed' if done
      return ending(job, 'snooze', '$3::text::float8 * interval \'1 s\', $4::text::json',
                    snooze, checkpoint) && 'snoozed' if snooze
      unless error
        ending(job, 'complete', '$3::text::json', result == 'null' ? nil : result)
        return 'completed'
      end
      ending(job, 'fail', '$3, $4::text::bool, $5::text::float8 * interval \'1 s\', $6::text::json',
             Document.parse(error), more.fetch(:retry, 'true'), retry_in, payload)
    end

    def ending(job, name, arguments, *values)
      ask("SELECT state::text FROM pulse.#{name}($1::text::bigint, $2::text::bigint, #{arguments})
        AS state", [job.id, job.token, *values]).first || true
    end
  end
end
