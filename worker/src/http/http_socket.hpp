// The listening socket of a server.
#pragma once

#include "http/http_address.hpp"
#include "loop/unique_fd.hpp"

namespace pulse {

// Invalid, with errno set, if there can be none.
UniqueFd listen_at(const HttpAddress& address);

// The port that it got.
std::uint16_t bound_port(int descriptor);

}  // namespace pulse
