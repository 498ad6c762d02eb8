// The server's surroundings: the disks of its files, and its own version. doctor() asks.
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "server/compat.hpp"
#include "server/values.hpp"

extern "C" {
#include "access/xlog_internal.h"
#include "catalog/pg_tablespace_d.h"
}

namespace pulse {
namespace {

// The folder of a tablespace, relative to the data directory, which is the working directory of
// each server process. The link of a tablespace leads to its disk. Without a tablespace: the folder
// of WAL.
const char* folder_of(Oid tablespace) {
  if (!OidIsValid(tablespace)) return XLOGDIR;
  if (tablespace == DEFAULTTABLESPACE_OID || tablespace == GLOBALTABLESPACE_OID) return ".";
  return psprintf("pg_tblspc/%u", tablespace);
}

}  // namespace
}  // namespace pulse

// pulse_internal.disk_space(tablespace): all NULL where the folder is gone. Space that only root
// may fill does not count as free.
PULSE_FUNCTION(pulse_disk_space) {
  using namespace pulse;
  const char* folder = folder_of(PG_GETARG_OID(0));
  struct statvfs space = {};
  struct stat file = {};
  bool is_known = statvfs(folder, &space) == 0 && stat(folder, &file) == 0;
  auto bytes = [&](uint64 blocks) -> NullableDatum {
    return {Int64GetDatum(static_cast<int64>(blocks * space.f_frsize)), !is_known};
  };
  PG_RETURN_DATUM(
      result_row(fcinfo, {bytes(space.f_blocks),
                          bytes(space.f_bavail),
                          {Int64GetDatum(static_cast<int64>(file.st_dev)), !is_known}}));
}

// pulse_internal.server_built_for(): the version of the server whose headers the library has.
PULSE_FUNCTION(pulse_server_built_for) { PG_RETURN_INT32(pulse::kServerVersionBuiltFor); }
