// The listening socket of a server.
#pragma once

#include <sys/socket.h>

#include <string>

#include "base/http/address.hpp"
#include "base/loop/unique_fd.hpp"

namespace pulse {

// Invalid, with errno set, if there can be none.
UniqueFd listen_at(const HttpAddress& address);

// The port that the system gave.
std::uint16_t bound_port(int descriptor);

// The address of a client in digits, without the port; empty for an address outside of IP.
std::string address_text(const sockaddr* client);

}  // namespace pulse
