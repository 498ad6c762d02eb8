// A request for a handler: read, admitted, and with a session of the database.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/http/message.hpp"
#include "database/database.hpp"
#include "serve/access.hpp"
#include "serve/form.hpp"

namespace pulse::console {

struct Request {
  std::string method;
  std::string node;  // the NAME of the database, where the server has several; else empty
  std::string path;  // as sent, without the query, and without the path of the node
  std::map<std::string, std::string> parameters;  // of the pattern, decoded
  Form query;
  Form form;  // of a body that is application/x-www-form-urlencoded
  std::string body;
  HttpRequest http;  // headers, by name in lower case
  Access access;
  // Lent for the request, with the client's role. Absent for Need::nothing.
  Database* session = nullptr;
  // False: answer at once, because too many requests wait already.
  bool may_wait = true;
  // Whether the client has gone, the client's token was removed, or the server ends.
  std::function<bool()> is_client_gone;

  Database& database() const { return *session; }
  const std::string& header(std::string_view name) const { return http.header(name); }
  // A parameter of the route's pattern; empty where the pattern has no such name.
  const std::string& parameter(const std::string& name) const;
  bool is_change() const { return method != "GET" && method != "HEAD"; }
};

}  // namespace pulse::console
