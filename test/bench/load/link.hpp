// A session with the database that never blocks the loop: what is asked now is answered later.
#pragma once

#include <libpq-fe.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "loop.hpp"
#include "session.hpp"

namespace bench {

// One statement of those that the link prepared, with its values as text.
struct Question {
  int statement;
  std::vector<std::string> values;
};

// The text of an array of numbers.
std::string array_text(const Ids& ids);

class Link : public Loop::Listener {
 public:
  // The rows of each statement, in order.
  using Answer = std::function<void(std::vector<Rows>& rows)>;

  // Connects and prepares; only this waits for the server.
  Link(Loop* loop, const std::string& name, const std::vector<std::string>& statements);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // All of it is one round trip and one transaction. An error of the server ends the program.
  void ask(const std::vector<Question>& questions, Answer answer);
  bool is_idle() const { return asked_.empty(); }

  void on_ready() override;

 private:
  struct Asked {
    Answer answer;
    std::vector<Rows> rows;
  };
  void send();
  void take_result(PGresult* result);

  Loop* loop_;
  std::unique_ptr<PGconn, decltype(&PQfinish)> connection_;
  std::deque<Asked> asked_;
  bool wants_writable_ = false;
};

}  // namespace bench
