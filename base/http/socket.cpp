#include "base/http/socket.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace pulse {
namespace {

constexpr int kBacklog = 128;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = sizeof(sockaddr_storage);

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

SocketAddress socket_address(const HttpAddress& address) {
  SocketAddress made;
  if (address.is_ipv6()) {
    auto* inet6 = reinterpret_cast<sockaddr_in6*>(&made.storage);
    inet6->sin6_family = AF_INET6;
    inet6->sin6_port = htons(address.port);
    inet_pton(AF_INET6, address.host.c_str(), &inet6->sin6_addr);
    made.length = sizeof *inet6;
  } else {
    auto* inet = reinterpret_cast<sockaddr_in*>(&made.storage);
    inet->sin_family = AF_INET;
    inet->sin_port = htons(address.port);
    inet_pton(AF_INET, address.host.c_str(), &inet->sin_addr);
    made.length = sizeof *inet;
  }
  return made;
}

}  // namespace

std::uint16_t bound_port(int descriptor) {
  SocketAddress bound;
  if (getsockname(descriptor, bound.get(), &bound.length) != 0) return 0;
  const bool is_ipv6 = bound.storage.ss_family == AF_INET6;
  return ntohs(is_ipv6 ? reinterpret_cast<sockaddr_in6*>(&bound.storage)->sin6_port
                       : reinterpret_cast<sockaddr_in*>(&bound.storage)->sin_port);
}

std::string address_text(const sockaddr* client) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (client->sa_family == AF_INET) {
    bytes = &reinterpret_cast<const sockaddr_in*>(client)->sin_addr;
  } else if (client->sa_family == AF_INET6) {
    bytes = &reinterpret_cast<const sockaddr_in6*>(client)->sin6_addr;
  }
  if (bytes == nullptr) return {};
  return inet_ntop(client->sa_family, bytes, text.data(), text.size()) == nullptr ? std::string()
                                                                                  : text.data();
}

UniqueFd listen_at(const HttpAddress& address) {
  SocketAddress wanted = socket_address(address);
  UniqueFd listener(
      socket(wanted.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) return listener;
  // A port whose last server has just ended is free.
  const int yes = 1;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(listener.get(), wanted.get(), wanted.length) == 0 &&
      listen(listener.get(), kBacklog) == 0) {
    return listener;
  }
  const int error = errno;
  listener.reset();
  errno = error;
  return listener;
}

}  // namespace pulse
