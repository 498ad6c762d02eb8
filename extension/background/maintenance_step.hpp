// One step of a maintainer: a statement of ours in a transaction of its own, with the rights of the
// extension's owner and nothing more. It waits for no table, and an error ends the step only.
#pragma once

#include "server/postgres.hpp"
#include "server/shared_memory.hpp"

namespace pulse {

// What databases and roles may have been given for people's sessions is not for this one.
void pin_settings();

// Finds out who owns the extension and which tables it has. False when it is not installed.
bool find_extension(bool* can_prune);

// kBusy: somebody has a table, or wants the database, for himself. kGone: the extension went.
enum class StepEnd { kDone, kBusy, kGone, kFailed };

// Runs a statement that answers one bigint.
StepEnd run_step(MaintainerState* state, const char* statement, int64* answer);

// Whether somebody wants the database for himself.
bool is_in_the_way();

}  // namespace pulse
