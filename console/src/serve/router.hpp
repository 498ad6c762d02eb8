// The routes: which handler answers a method and path.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/problem.hpp"
#include "serve/request.hpp"
#include "serve/response.hpp"

namespace pulse::console {

// May throw Refused, Unreachable or Failed, from which the router makes an answer.
using Handler = std::function<Response(const Request& request)>;

// Returns the text of an event, once for all clients that ask the same with the same role. The
// server sends the text when it has changed.
using Producer = std::function<std::string(const Request& request)>;

// The threads and sessions that answer a request. Requests that may wait long have a pool of their
// own.
enum class Pool { quick, waiting };

// How often a live list is read: with the time of the reading, a change shows within two seconds.
constexpr std::chrono::milliseconds kListInterval(1500);

struct Route {
  std::string method;
  std::string pattern;  // of texts and {parameters}: /jobs/{id}, which matches only an id
  Need need = Need::read;
  Handler handler = {};
  Pool pool = Pool::quick;
  Producer producer = {};  // streams only
  std::chrono::milliseconds interval{1000};
};

class Router {
 public:
  void add(std::string method, std::string pattern, Need need, Handler handler,
           Pool pool = Pool::quick);
  // Adds a GET that answers with server-sent events.
  void add_stream(std::string pattern, Need need, std::chrono::milliseconds interval,
                  Producer producer);

  // Answers problems of paths that are not below /v1, in place of application/problem+json. Where
  // the request has a session, the page names its database.
  std::function<Response(const Request& request, const Problem& problem)> error_page;

  struct Found {
    const Route* route = nullptr;
    std::map<std::string, std::string> parameters;
    std::string allowed;  // without a route: the methods that the path has, as in "GET, POST"
    bool is_known = false;
  };
  // The route of GET answers HEAD, too.
  Found find(std::string_view method, std::string_view path) const;

  Response error(const Request& request, const Problem& problem) const;

  const std::vector<Route>& routes() const { return routes_; }

 private:
  std::vector<Route> routes_;
};

}  // namespace pulse::console
