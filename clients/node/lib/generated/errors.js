// Written by test/docs/generate; do not edit.
'use strict'

// Of each SQLSTATE with a class the class's name.
const names = {
  'PU001': 'ClaimLost',
  'PU002': 'WorkerUnknown',
  'PU003': 'SettingsRefused',
  'PU004': 'OutOfRange',
  'PU005': 'NotFound',
  'PU006': 'InTransaction',
  'PU007': 'WrongIsolation',
  'PU008': 'ClaimsOff',
  'PU009': 'JobsWouldBeLost',
  'PU010': 'JobMustNotRun',
  '42501': 'NotGranted',
  '25006': 'ReadOnly',
  '25P02': 'Aborted',
}

const hints = {
  '42501':
    'The owner of the extension grants it: SELECT pulse.grant_producer(ROLE).',
  '25006':
    'Connect to the primary, or begin the transaction with READ WRITE.',
  '25P02':
    'An earlier statement of this transaction has failed: ROLLBACK, and repeat all ' +
    'of it.',
}

const install =
  'Install pg_pulse on the server and run CREATE EXTENSION pg_pulse in this ' +
  'database.'
const update =
  'Install those files of pg_pulse on the server and run ALTER EXTENSION pg_pulse ' +
  'UPDATE, or npm install the version of pg-pulse that the extension has.'

module.exports = { names, hints, install, update }
