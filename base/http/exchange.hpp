// HTTP exchange: one request and the answer, which may come from any thread, later. `mutex_` guards
// all fields but `request`, which is written before the handler is called.
#pragma once

#include <mutex>
#include <optional>

#include "base/http/message.hpp"

struct MHD_Connection;

namespace pulse {

class HttpExchange {
 public:
  explicit HttpExchange(MHD_Connection* connection) : connection_(connection) {}

  HttpRequest request;

  // Once; a second answer, or one that comes when the server has ended, is dropped.
  void answer(HttpResponse response);

  // Asks the socket whether the client has closed the connection. Until the answer is given.
  bool is_client_gone();

  // For the server's thread. The answer if there is one; else the connection sleeps until answer().
  std::optional<HttpResponse> answer_or_suspend();

 private:
  std::mutex mutex_;
  MHD_Connection* const connection_;
  std::optional<HttpResponse> response_;
  bool is_answered_ = false;
  bool is_suspended_ = false;
};

}  // namespace pulse
