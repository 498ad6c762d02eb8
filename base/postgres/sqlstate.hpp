// The SQLSTATEs that the worker and the console act on: pg_pulse's own, and a few of the server's.
#pragma once

namespace pulse::sqlstate {

// Notices of pg_pulse, which say that an action is due.
inline constexpr const char* kSweepIsDue = "PU100";
inline constexpr const char* kHandlersChanged = "PU102";

// Refusals of pg_pulse.
inline constexpr const char* kClaimIsOver = "PU001";
inline constexpr const char* kWorkerIsLost = "PU002";
inline constexpr const char* kSettingsDisagree = "PU003";
inline constexpr const char* kBadValue = "PU004";
inline constexpr const char* kNotFound = "PU005";
inline constexpr const char* kClaimsAreOff = "PU008";
inline constexpr const char* kMustNotRunAgain = "PU010";

// The server's.
inline constexpr const char* kWarning = "01000";
inline constexpr const char* kQueryCanceled = "57014";
inline constexpr const char* kLockNotAvailable = "55P03";
inline constexpr const char* kInvalidValue = "22023";
inline constexpr const char* kNoPrivilege = "42501";
inline constexpr const char* kNoSchema = "3F000";
inline constexpr const char* kNoFunction = "42883";
inline constexpr const char* kNoTable = "42P01";
inline constexpr const char* kNoColumn = "42703";
inline constexpr const char* kReadOnly = "25006";
inline constexpr const char* kOtherVersion = "55000";
inline constexpr const char* kNoStatement = "26000";
inline constexpr const char* kDuplicateStatement = "42P05";
inline constexpr const char* kInvalidPassword = "28P01";
inline constexpr const char* kInvalidRole = "28000";
inline constexpr const char* kNoDatabase = "3D000";

}  // namespace pulse::sqlstate
