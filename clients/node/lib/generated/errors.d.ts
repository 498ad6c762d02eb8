// Written by test/docs/generate; do not edit.

/** An error of the server. `code` is the SQLSTATE, `cause` the driver's error. */
export class PulseError extends Error {
  readonly code: string
  readonly hint?: string
  readonly detail?: string
}
/** SQLSTATE PU001 */
export class ClaimLost extends PulseError {}
/** SQLSTATE PU002 */
export class WorkerUnknown extends PulseError {}
/** SQLSTATE PU003 */
export class SettingsRefused extends PulseError {}
/** SQLSTATE PU004 */
export class OutOfRange extends PulseError {}
/** SQLSTATE PU005 */
export class NotFound extends PulseError {}
/** SQLSTATE PU006 */
export class InTransaction extends PulseError {}
/** SQLSTATE PU007 */
export class WrongIsolation extends PulseError {}
/** SQLSTATE PU008 */
export class ClaimsOff extends PulseError {}
/** SQLSTATE PU009 */
export class JobsWouldBeLost extends PulseError {}
/** SQLSTATE PU010 */
export class JobMustNotRun extends PulseError {}
/** SQLSTATE 42501 */
export class NotGranted extends PulseError {}
/** SQLSTATE 25006 */
export class ReadOnly extends PulseError {}
/** SQLSTATE 25P02 */
export class Aborted extends PulseError {}
/** The database has no pg_pulse. */
export class NoExtension extends PulseError {}
/** The database has a pg_pulse that this library is not made for. */
export class OtherVersion extends PulseError {}
