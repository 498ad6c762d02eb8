#include "access/search_path.hpp"

namespace pulse {

int begin_secure_search_path() {
  int level = NewGUCNestLevel();
  (void)set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION,
                          GUC_ACTION_SAVE, true, 0, false);
  return level;
}

}  // namespace pulse
