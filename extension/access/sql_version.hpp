// The library serves the SQL of its own version and of every older version (make check-symbols).
#pragma once

namespace pulse {

// Raises where the SQL that is installed in this database is newer than the library.
void require_served_sql();

}  // namespace pulse
