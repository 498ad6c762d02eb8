// The files of the page, as the build put them into the program.
#pragma once

#include <string_view>

namespace pulse::console {

struct Asset {
  const char* path;
  const char* type;
  std::string_view text;
};

// The build makes the source of these from the files in pages/assets.
extern const Asset kAssets[3];

}  // namespace pulse::console
