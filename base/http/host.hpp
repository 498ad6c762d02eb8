// HTTP host: the names by which clients may call a server. A page of another origin can make a name
// of its own point at the server, but neither an address nor localhost.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pulse {

// In a header Host: the name in lower case, or the address without brackets. Empty for a text that
// is not HOST or HOST:PORT.
std::string name_in_host(std::string_view host);

// Whether a server with `names` answers to `name`; each server answers to addresses and localhost.
bool is_name_of_server(const std::string& name, const std::vector<std::string>& names);

}  // namespace pulse
