#include "base/http/exchange.hpp"

#include <microhttpd.h>
#include <sys/socket.h>

#include <cerrno>

namespace pulse {

const std::string& HttpRequest::header(std::string_view name) const {
  static const std::string kNone;
  const auto found = headers.find(name);
  return found == headers.end() ? kNone : found->second;
}

void HttpExchange::answer(HttpResponse response) {
  const std::lock_guard lock(mutex_);
  if (is_answered_) return;
  is_answered_ = true;
  response_ = std::move(response);
  if (is_suspended_) MHD_resume_connection(connection_);
}

// A suspended connection is not closed, so the descriptor is the client's until the answer.
bool HttpExchange::is_client_gone() {
  const std::lock_guard lock(mutex_);
  if (is_answered_) return true;
  const auto* info = MHD_get_connection_info(connection_, MHD_CONNECTION_INFO_CONNECTION_FD);
  if (info == nullptr) return true;
  char byte = 0;
  const ssize_t length = recv(info->connect_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR);
}

std::optional<HttpResponse> HttpExchange::answer_or_suspend() {
  const std::lock_guard lock(mutex_);
  if (response_) {
    is_suspended_ = false;
    return std::exchange(response_, std::nullopt);
  }
  is_suspended_ = true;
  MHD_suspend_connection(connection_);
  return std::nullopt;
}

}  // namespace pulse
