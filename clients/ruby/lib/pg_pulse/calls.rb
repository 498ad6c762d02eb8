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

      unless unique.is_a?(Hash) && unique.key?(:for) && (unique.keys - %i[for by states]).empty?
        raise ArgumentError, "unique has for, by and states, and is #{unique}"
      end

      key = PgPulse.unique_key(payload.equal?(OMITTED) ? {} : payload, unique[:by])
      add_job_once(db, unique.fetch(:for), key, identifier, payload, **options,
                   **unique.slice(:states))
    end

    JOB_SPEC = %i[identifier payload queue_name run_at max_attempts job_key priority flags].freeze

    # Adds several jobs in the caller's transaction.
    def add_jobs(db, specs, **options)
      specs = Statement.jobs(specs)
      unknown, = specs.flat_map(&:keys) - JOB_SPEC
      raise ArgumentError, "a job has no #{unknown}: it has #{JOB_SPEC.join(', ')}" if unknown

      super
    end

    # In `after` a text is the key of a job of the flow; all else is the id of a job.
    def add_flow(db, jobs, **options)
      jobs = Statement.jobs(jobs)
      keys = jobs.filter_map { |job| job[:key]&.to_s }
      parent = ->(each) { keys.include?(each) || !each.match?(/\A\d+\z/) ? each : each.to_i }
      jobs = jobs.map { |job| { **job, after: job[:after].to_a.map { parent[_1.to_s] } } }
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

      # What takes a payload out of a document reads the payload, and refuses "\u0000" in it.
      'ARRAY(SELECT ROW(r.identifier, p.payload::json, r.queue_name, r.run_at, r.max_attempts, ' \
        'r.job_key, r.priority, r.flags)::pulse.job_spec ' \
        'FROM (SELECT u.n, u.value AS spec, lead(u.value) OVER (ORDER BY u.n) AS payload ' \
        "FROM unnest($#{number}::text::text[]) WITH ORDINALITY AS u (value, n)) AS p, " \
        'json_populate_record(NULL::pulse.job_spec, p.spec::json) AS r ' \
        'WHERE mod(p.n, 2) = 1 ORDER BY p.n)'
    end

    def parameter(type, value, name)
      return Document.encode(value, "the #{name}") if type == 'json'
      return array(value.flat_map { |job| spec(job) }) if type == 'pulse.job_spec[]'
      return array(list(value)) if type.end_with?('[]') && value
      # A server reads no 1.0e-07.
      return format('%f seconds', value) if type == 'interval' && value.is_a?(Numeric)

      time(value, name)&.to_s
    end

    # A job without its payload, and the payload, which may be left out.
    def spec(job)
      payload = Document.encode(job[:payload], 'the payload') if job.key?(:payload)
      [Document.encode(job.except(:payload), 'the job'), payload]
    end

    # A time to the microsecond, as the server keeps times; all else as it is. The server would read
    # a date in the time zone of whatever session adds the job.
    def time(value, name)
      return value.to_time.round(6).getutc.iso8601(6) if
        value.is_a?(Time) || value.is_a?(DateTime)
      return value unless value.is_a?(Date)

      raise ArgumentError, "#{name} is #{value}, a date without a time zone: give a Time"
    end

    # The jobs of add_jobs and add_flow, whose lists and times are as those of add_job.
    def jobs(values)
      list(values).map do |job|
        unless job.is_a?(Hash)
          raise TypeError, "a job is a Hash of identifier, payload …, and #{job.inspect} is given"
        end

        job.to_h do |name, value|
          name = name.to_s.to_sym
          value = list(value) if value && %i[after flags].include?(name)
          [name, name == :payload ? value : time(value, name)]
        end
      end
    end

    def array(values)
      quoted = ->(value) { "\"#{value.to_s.gsub(/["\\]/) { |sign| "\\#{sign}" }}\"" }
      "{#{values.map { |value| value.nil? ? 'NULL' : quoted[value] }.join(',')}}"
    end

    # A text has letters, and a Hash has pairs, which nobody means.
    def list(values)
      return values.to_a if values.respond_to?(:map) && !values.respond_to?(:to_hash)

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
