# frozen_string_literal: true

require_relative 'generated/functions'

module PgPulse
  # What the caller leaves out, and the server knows.
  OMITTED = Object.new.freeze

  # Calls of the schema pulse: a method for each function of SQL, by the same name. `db` is a
  # connection of pg or of Active Record, or a class of Active Record, which has a connection.
  module Calls
    include Functions

    # Adds a job in the caller's transaction; with `unique` once in a period.
    def add_job(db, identifier, payload = OMITTED, unique: nil, **options)
      return super(db, identifier, payload, **options) unless unique

      unless unique.key?(:for) && (unique.keys - %i[for by states]).empty?
        raise ArgumentError, "unique has for, by and states, and is #{unique}"
      end

      key = PgPulse.unique_key(payload.equal?(OMITTED) ? {} : payload, unique[:by])
      add_job_once(db, unique.fetch(:for), key, identifier, payload, **options,
                   **unique.slice(:states))
    end

    JOB_SPEC = %i[identifier payload queue_name run_at max_attempts job_key priority flags].freeze

    # Adds several jobs in the caller's transaction.
    def add_jobs(db, specs, **options)
      unknown, = specs.flat_map(&:keys).map(&:to_sym) - JOB_SPEC
      raise ArgumentError, "a job has no #{unknown}: it has #{JOB_SPEC.join(', ')}" if unknown

      super
    end

    # In `after` a text is the key of a job of the flow; all else is the id of a job.
    def add_flow(db, jobs, **options)
      jobs = jobs.map { |job| job.transform_keys(&:to_sym) }
      keys = jobs.filter_map { |job| job[:key]&.to_s }
      parent = ->(each) { keys.include?(each) || !each.match?(/\A\d+\z/) ? each : each.to_i }
      jobs = jobs.map { |job| { **job, after: job.fetch(:after, []).map { parent[_1.to_s] } } }
      super(db, jobs, **options)
    end

    # Raises where the database has no extension, or one that this library is not made for.
    def check_version(db)
      found, = Database.ask(db, "SELECT extversion FROM pg_extension WHERE extname = 'pg_pulse'")
      raise Errors.no_extension unless found

      major = ->(version) { version.split('.').first(2) }
      major[found] == major[VERSION] ? found : raise(Errors.other_version(found))
    end

    private

    def call(db, name, values)
      function = FUNCTIONS[name]
      values = values.reject { |_, value| OMITTED.equal?(value) }
      named = values.keys.each_with_index.map do |argument, i|
        "#{argument} => #{Statement.placeholder(function[:takes][argument], i + 1)}"
      end
      texts = values.map { |key, value| Statement.parameter(function[:takes][key], value, key) }
      text = Statement.text(function, "pulse.#{name}(#{named.join(', ')})")
      Statement.read(function, Database.ask(db, text, texts))
    end
  end

  # The text of a call, its parameters as texts, and what comes back.
  module Statement
    module_function

    def text(function, call)
      return "CALL #{call}" if function[:is_procedure]
      return "SELECT NULL FROM #{call}" if function[:gives] == :nothing
      return "SELECT to_json(value)::text FROM #{call} AS value" if function[:type]

      columns = function[:columns].keys.join(', ')
      "SELECT row_to_json(r)::text FROM (SELECT #{columns} FROM #{call}) AS r"
    end

    def placeholder(type, number)
      return "$#{number}::text::#{type}" unless type == 'pulse.job_spec[]'

      # A record that is populated has no payload null.
      "ARRAY(SELECT ROW(r.identifier, s -> 'payload', r.queue_name, r.run_at, r.max_attempts, " \
        'r.job_key, r.priority, r.flags)::pulse.job_spec ' \
        "FROM json_array_elements($#{number}::text::json) AS s, " \
        'json_populate_record(NULL::pulse.job_spec, s) AS r)'
    end

    def parameter(type, value, name)
      return Document.encode(value, "the #{name}") if type.match?(/json|job_spec/)
      return array(value) if type.end_with?('[]') && value
      # A server reads no 1.0e-07.
      return format('%f seconds', value) if type == 'interval' && value.is_a?(Numeric)

      value.is_a?(Time) ? value.getutc.iso8601(6) : value&.to_s
    end

    def array(values)
      quoted = ->(value) { "\"#{value.to_s.gsub(/["\\]/) { |sign| "\\#{sign}" }}\"" }
      "{#{list(values).map { |value| value.nil? ? 'NULL' : quoted[value] }.join(',')}}"
    end

    def list(values)
      return values if values.respond_to?(:map)

      raise TypeError, "a list is wanted, and #{values.inspect} is given"
    end

    def read(function, texts)
      return if function[:gives] == :nothing

      found = texts.map { |text| value_of(function, Document.parse(text.to_s)) }
      return found if %i[rows values].include?(function[:gives])

      found.first unless found.first.is_a?(Hash) && found.first.values.all?(&:nil?)
    end

    def value_of(function, value)
      return typed(value, function[:type]) unless function[:columns]

      value.to_h { |name, each| [name.to_sym, typed(each, function[:columns][name.to_sym])] }
    end

    # Ids are texts, as in the job that a handler gets.
    def typed(value, type)
      return value.map { |each| typed(each, type.delete_suffix('[]')) } if value.is_a?(Array)

      case type
      when 'bigint' then value&.to_s
      when 'timestamptz' then value&.match?(/\A\d{4}-/) ? Time.iso8601(value) : value
      else value
      end
    end
  end

  extend Calls
end
