#include "base/http/stream.hpp"

#include <microhttpd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace pulse {
namespace {

// The longest time without reading, and the most bytes unread, before a client is dropped.
constexpr std::chrono::seconds kMaxDelay(30);
constexpr std::size_t kMaxWaiting = 1024UL * 1024;

}  // namespace

bool HttpStream::send(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return false;
  if (is_too_slow(text.size())) {
    drop();
  } else {
    if (waiting_.empty()) waiting_since_ = std::chrono::steady_clock::now();
    waiting_ += text;
  }
  wake();
  return !is_closed_;
}

bool HttpStream::is_too_slow(std::size_t more) const {
  if (waiting_.size() + more > kMaxWaiting) return true;
  return !waiting_.empty() && std::chrono::steady_clock::now() - waiting_since_ > kMaxDelay;
}

// The connection is there until set_gone, and so is the descriptor.
void HttpStream::drop() {
  waiting_.clear();
  is_closed_ = true;
  if (connection_ == nullptr) return;
  const auto* info = MHD_get_connection_info(connection_, MHD_CONNECTION_INFO_CONNECTION_FD);
  if (info != nullptr) shutdown(info->connect_fd, SHUT_RDWR);
}

void HttpStream::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  wake();
}

bool HttpStream::is_open() {
  const std::lock_guard lock(mutex_);
  return !is_closed_;
}

void HttpStream::begin(MHD_Connection* connection) {
  const std::lock_guard lock(mutex_);
  connection_ = connection;
}

ssize_t HttpStream::read(char* buffer, std::size_t size) {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty()) {
    if (is_closed_) return MHD_CONTENT_READER_END_OF_STREAM;
    is_suspended_ = true;
    MHD_suspend_connection(connection_);
    return 0;
  }
  const std::size_t length = std::min(size, waiting_.size());
  std::memcpy(buffer, waiting_.data(), length);
  waiting_.erase(0, length);
  return static_cast<ssize_t>(length);
}

void HttpStream::set_gone() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  is_suspended_ = false;
  connection_ = nullptr;
  waiting_.clear();
}

void HttpStream::wake() {
  if (!is_suspended_) return;
  is_suspended_ = false;
  MHD_resume_connection(connection_);
}

}  // namespace pulse
