// Style, script and picture: the only files of the pages.
#include "pages/assets/assets.hpp"
#include "pages/pages.hpp"

namespace pulse::console {

void add_assets(Router& router) {
  for (const Asset& asset : kAssets) {
    router.add("GET", asset.path, Need::nothing, [&asset](const Request& /*request*/) {
      Response response;
      response.type = asset.type;
      response.body = asset.text;
      response.headers.emplace_back("Cache-Control", "max-age=300");
      return response;
    });
  }
}

}  // namespace pulse::console
