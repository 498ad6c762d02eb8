// HTTP stream: a response without an end, for server-sent events: text sent to the stream waits
// until the client has read it. A client that reads too slowly is dropped. `mutex_` guards all
// fields.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>

struct MHD_Connection;

namespace pulse {

class HttpStream {
 public:
  // False: the client has gone or was dropped, and nothing is sent any more.
  bool send(std::string_view text);
  // Text that was sent is still delivered.
  void close();
  bool is_open();

  // For the server's thread.
  void begin(MHD_Connection* connection);
  ssize_t read(char* buffer, std::size_t size);
  void set_gone();

 private:
  void wake();
  bool is_too_slow(std::size_t more) const;
  void drop();

  std::mutex mutex_;
  std::string waiting_;
  std::chrono::steady_clock::time_point waiting_since_;
  MHD_Connection* connection_ = nullptr;
  bool is_suspended_ = false;
  bool is_closed_ = false;  // by either side
};

}  // namespace pulse
