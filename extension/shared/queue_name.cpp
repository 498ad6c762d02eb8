#include "shared/queue_name.hpp"

#include "access/catalog.hpp"
#include "server/call_checks.hpp"
#include "server/errors.hpp"

extern "C" {
#include "common/hashfn.h"
}

namespace pulse {

void check_queue_name(text* name) {
  check_name("queue_name", name, kMaxName);
  int slashes = 0;
  bool has_star = false;
  for (int i = 0; i < static_cast<int>(VARSIZE_ANY_EXHDR(name)); i++) {
    slashes += VARDATA_ANY(name)[i] == '/';
    has_star |= VARDATA_ANY(name)[i] == '*';
  }
  if (has_star || slashes >= kMaxLevels)
    ereport(ERROR, (errcode(kOutOfRange),
                    errmsg("queue_name %s cannot name a queue of jobs",
                           quote_literal_cstr(text_to_cstring(name))),
                    errhint("Use at most four levels between slashes, and no asterisk.")));
}

uint64 queue_identity(Datum name) {
  text* queue = DatumGetTextPP(name);
  return DatumGetUInt64(
      hash_any_extended(reinterpret_cast<const unsigned char*>(VARDATA_ANY(queue)),
                        static_cast<int>(VARSIZE_ANY_EXHDR(queue)), catalog()->job));
}

}  // namespace pulse
