# frozen_string_literal: true

module PgPulse
  # Statements on the connection of the caller, and so in the transaction of the caller.
  module Database
    # Active Record 7.2 has another word for the connection of this thread.
    WORDS = %i[lease_connection connection].freeze

    module_function

    # The first column of each row.
    def ask(db, text, values = [])
      word = WORDS.find { |each| db.respond_to?(each) }
      db = db.public_send(word) if word
      return db.exec_query(text, 'pg_pulse', values).rows.flatten(1) if db.respond_to?(:exec_query)
      return db.exec_params(text, values).column_values(0) if db.respond_to?(:exec_params)

      raise TypeError, 'the first argument is no connection: give a PG::Connection, or a ' \
                       'connection or a class of Active Record'
    rescue StandardError => e
      raise Errors.translate(e)
    end
  end
end
