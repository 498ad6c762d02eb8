// HTTP messages: a request, and the answer.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace pulse {

class HttpStream;

struct HttpRequest {
  std::string method;
  std::string target;  // path and query as sent, still encoded
  std::string body;
  std::string address;  // of the client, without the port
  // By name in lower case. Of a header that came twice, the first; is_ambiguous tells. Of
  // X-Forwarded-For all, in their order.
  std::map<std::string, std::string, std::less<>> headers;
  // A header that a client sends once came twice: Host, Authorization, Content-Length and others.
  bool is_ambiguous = false;
  bool is_coded = false;      // the body is not here: the body comes in a coding other than chunked
  bool is_too_large = false;  // the body is not here: the body has more bytes than the server takes

  // The end of the body is not known, so nothing behind the body can be read.
  bool is_endless() const { return is_ambiguous || is_coded; }

  // Empty for a header that did not come. `name` is in lower case.
  const std::string& header(std::string_view name) const;
};

struct HttpResponse {
  unsigned status = 200;
  std::string body = {};
  std::string type = "text/plain; charset=utf-8";
  std::vector<std::pair<std::string, std::string>> headers = {};
  // Instead of a body: the text sent to the stream while the client listens.
  std::shared_ptr<HttpStream> stream = {};
};

}  // namespace pulse
