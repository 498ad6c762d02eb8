// Which handler answers what.
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

// May throw Refused, Unreachable or Failed, which become an answer.
using Handler = std::function<Response(const Request& request)>;

// The text of an event for the clients of a stream; called once for all that ask the same with the
// same role, and sent where it has changed.
using Producer = std::function<std::string(const Request& request)>;

// Of requests that wait for long, which have threads and sessions of their own.
enum class Lane { quick, waiting };

struct Route {
  std::string method;
  std::string pattern;  // parts are texts, or {names}: /jobs/{id}, which takes only what is an id
  Need need = Need::look;
  Handler handler = {};
  Lane lane = Lane::quick;
  Producer producer = {};  // of a stream
  std::chrono::milliseconds interval{1000};
};

class Router {
 public:
  void add(std::string method, std::string pattern, Need need, Handler handler,
           Lane lane = Lane::quick);
  // GET of a stream of server-sent events.
  void add_stream(std::string pattern, Need need, std::chrono::milliseconds interval,
                  Producer producer);

  // What pages answer instead of application/problem+json, for paths that are not below /v1.
  // The request may have a session, of which the page shows the database.
  std::function<Response(const Request& request, const Problem& problem)> error_page;

  struct Found {
    const Route* route = nullptr;
    std::map<std::string, std::string> parameters;
    std::string allowed;  // the methods of the path, where there is no route: GET, POST
    bool is_known = false;
  };
  // HEAD is answered by the route of GET.
  Found find(std::string_view method, std::string_view path) const;

  Response error(const Request& request, const Problem& problem) const;

  const std::vector<Route>& routes() const { return routes_; }

 private:
  std::vector<Route> routes_;
};

}  // namespace pulse::console
