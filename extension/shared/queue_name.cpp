#include "shared/queue_name.hpp"

#include "access/catalog.hpp"

extern "C" {
#include "common/hashfn.h"
}

namespace pulse {

uint64 queue_identity(Datum name) {
  text* queue = DatumGetTextPP(name);
  return DatumGetUInt64(
      hash_any_extended(reinterpret_cast<const unsigned char*>(VARDATA_ANY(queue)),
                        static_cast<int>(VARSIZE_ANY_EXHDR(queue)), catalog()->job));
}

}  // namespace pulse
