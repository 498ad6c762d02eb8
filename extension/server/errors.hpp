// SQLSTATE class PU: one code for each reason to refuse a call. docs/errors.md has the table.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

constexpr int kClaimLost = MAKE_SQLSTATE('P', 'U', '0', '0', '1');
constexpr int kWorkerNotAlive = MAKE_SQLSTATE('P', 'U', '0', '0', '2');
constexpr int kOutOfRange = MAKE_SQLSTATE('P', 'U', '0', '0', '4');
constexpr int kUnknown = MAKE_SQLSTATE('P', 'U', '0', '0', '5');
constexpr int kNotInTransactionBlock = MAKE_SQLSTATE('P', 'U', '0', '0', '6');
constexpr int kWrongIsolation = MAKE_SQLSTATE('P', 'U', '0', '0', '7');
constexpr int kClaimsOff = MAKE_SQLSTATE('P', 'U', '0', '0', '8');
constexpr int kLiveJobs = MAKE_SQLSTATE('P', 'U', '0', '0', '9');
// Not an error: the SQLSTATE of the notice that asks a waiting client to sweep.
constexpr int kSweepDue = MAKE_SQLSTATE('P', 'U', '1', '0', '0');
// Not an error: the SQLSTATE of the notice by which a heartbeat tells of handlers that were set
// lately.
constexpr int kHandlersChanged = MAKE_SQLSTATE('P', 'U', '1', '0', '2');

}  // namespace pulse
