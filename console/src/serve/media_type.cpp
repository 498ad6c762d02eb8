#include "serve/media_type.hpp"

#include "text/lower.hpp"

namespace pulse::console {

std::string media_type_of(const Request& request) {
  const std::string& header = request.header("content-type");
  const std::string type = header.substr(0, header.find(';'));
  return lower(type.substr(0, type.find_last_not_of(" \t") + 1));
}

}  // namespace pulse::console
