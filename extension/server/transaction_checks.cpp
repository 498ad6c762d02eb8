#include "server/transaction_checks.hpp"

#include "server/errors.hpp"

namespace pulse {

void warn_in_block(const char* what) {
  if (!IsTransactionBlock()) return;
  ereport(
      WARNING,
      (errmsg("%s inside a transaction block counts only once that commits", what),
       errhint("Call it by itself; a client library that opens transactions needs autocommit.")));
}

}  // namespace pulse

PULSE_FUNCTION(pulse_in_client_block) { PG_RETURN_BOOL(IsTransactionBlock()); }

// pulse._warn_in_block(what)
PULSE_FUNCTION(pulse_warn_in_block) {
  pulse::warn_in_block(text_to_cstring(PG_GETARG_TEXT_PP(0)));
  PG_RETURN_VOID();
}

// pulse._require_read_committed(what): raises PU007 at any other isolation level.
PULSE_FUNCTION(pulse_require_read_committed) {
  if (XactIsoLevel != XACT_READ_COMMITTED)
    ereport(ERROR, (errcode(pulse::kWrongIsolation),
                    errmsg("%s needs isolation level READ COMMITTED",
                           text_to_cstring(PG_GETARG_TEXT_PP(0))),
                    errhint("SET TRANSACTION ISOLATION LEVEL READ COMMITTED.")));
  PG_RETURN_BOOL(true);
}
