# frozen_string_literal: true

# Written by test/docs/generate; do not edit.
module PgPulse
  # SQLSTATE PU001
  class ClaimLost < Error; end
  # SQLSTATE PU002
  class WorkerUnknown < Error; end
  # SQLSTATE PU003
  class SettingsRefused < Error; end
  # SQLSTATE PU004
  class OutOfRange < Error; end
  # SQLSTATE PU005
  class NotFound < Error; end
  # SQLSTATE PU006
  class InTransaction < Error; end
  # SQLSTATE PU007
  class WrongIsolation < Error; end
  # SQLSTATE PU008
  class ClaimsOff < Error; end
  # SQLSTATE PU009
  class JobsWouldBeLost < Error; end
  # SQLSTATE PU010
  class JobMustNotRun < Error; end
  # SQLSTATE 42501
  class NotGranted < Error; end
  # SQLSTATE 25006
  class ReadOnly < Error; end
  # SQLSTATE 25P02
  class Aborted < Error; end
  # The database has no pg_pulse.
  class NoExtension < Error; end
  # The database has a pg_pulse that this library is not made for.
  class OtherVersion < Error; end

  # What the library says of errors.
  module Errors
    CLASSES = {
      'PU001' => ClaimLost,
      'PU002' => WorkerUnknown,
      'PU003' => SettingsRefused,
      'PU004' => OutOfRange,
      'PU005' => NotFound,
      'PU006' => InTransaction,
      'PU007' => WrongIsolation,
      'PU008' => ClaimsOff,
      'PU009' => JobsWouldBeLost,
      'PU010' => JobMustNotRun,
      '42501' => NotGranted,
      '25006' => ReadOnly,
      '25P02' => Aborted
    }.freeze
    HINTS = {
      '42501' =>
        'The owner of the extension grants it: SELECT pulse.grant_producer(ROLE).',
      '25006' =>
        'Connect to the primary, or begin the transaction with READ WRITE.',
      '25P02' =>
        'An earlier statement of this transaction has failed: ROLLBACK, and repeat all ' \
        'of it.'
    }.freeze
    INSTALL =
      'Install pg_pulse on the server and run CREATE EXTENSION pg_pulse in this ' \
      'database.'
    UPDATE =
      'Install those files of pg_pulse on the server and run ALTER EXTENSION pg_pulse ' \
      'UPDATE, or take the version of the gem pg_pulse that the extension has.'
  end
end
