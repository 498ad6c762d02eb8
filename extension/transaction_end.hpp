// The work of the extension when a transaction or a savepoint ends.
#pragma once

namespace pulse {

// Called once, from _PG_init.
void register_transaction_end();

}  // namespace pulse
