// One request and its answer, which may come from any thread, later.
#pragma once

#include <mutex>
#include <optional>

#include "http/http_message.hpp"

struct MHD_Connection;

namespace pulse {

class HttpExchange {
 public:
  explicit HttpExchange(MHD_Connection* connection) : connection_(connection) {}

  HttpRequest request;

  // Once; a second answer, or one that comes when the server has ended, is dropped.
  void answer(HttpResponse response);

  // A look at the socket: whether the client has closed it. Until the answer is given.
  bool is_client_gone();

  // For the server's thread. The answer if it is there; else the connection sleeps until it is.
  std::optional<HttpResponse> take_answer();

 private:
  std::mutex mutex_;
  MHD_Connection* const connection_;
  std::optional<HttpResponse> response_;
  bool is_answered_ = false;
  bool is_suspended_ = false;
};

}  // namespace pulse
