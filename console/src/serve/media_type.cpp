#include "serve/media_type.hpp"

#include <cctype>

namespace pulse::console {

std::string media_type_of(const Request& request) {
  const std::string& header = request.header("content-type");
  std::string type = header.substr(0, header.find(';'));
  type = type.substr(0, type.find_last_not_of(" \t") + 1);
  for (char& c : type) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return type;
}

}  // namespace pulse::console
