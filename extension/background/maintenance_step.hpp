// One step of a maintainer: a statement in a transaction of its own, with the rights of the
// extension's owner only. It waits for no table, and an error ends only the step.
#pragma once

#include "server/postgres.hpp"
#include "server/shared_memory.hpp"

namespace pulse {

// Overrides settings that a database or role may have set for client sessions.
void pin_settings();

// Reads the extension's owner and tables. False when the extension is not installed.
bool find_extension(bool* can_prune);

// kBusy: another session locks a table, or needs the database alone. kGone: the extension was
// dropped.
enum class StepEnd { kDone, kBusy, kGone, kFailed };

// Runs a statement that returns one bigint.
StepEnd run_step(MaintainerState* state, const char* statement, int64* result);

// True when another session needs this database alone.
bool is_database_wanted();

}  // namespace pulse
