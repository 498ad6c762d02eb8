// Crontab loader: makes the schedules of the database equal to the crontab file: once the worker is
// registered, and whenever the file is read again.
#pragma once

#include <functional>
#include <string>

#include "base/log/log.hpp"
#include "base/loop/timers.hpp"
#include "base/postgres/session.hpp"
#include "crontab/crontab.hpp"

namespace pulse {

class CrontabLoader {
 public:
  CrontabLoader(Session& session, Timers& timers, Log& log);
  CrontabLoader(const CrontabLoader&) = delete;
  CrontabLoader& operator=(const CrontabLoader&) = delete;

  // The items of the file from now on.
  void set(std::string set_name, CrontabItems items);
  // The session may be used from now on.
  void start();
  void stop();

  // Calls back once nothing waits to be loaded: at once, or after an answer.
  void when_loaded(std::function<void()> then);

  // The first load was refused: the reason.
  std::function<void(const std::string&)> on_refused;

 private:
  bool send_next();
  void take_reply(const Reply& reply);
  void take_failure(const Reply& reply);
  void tell_loaded();

  Session& session_;
  Log& log_;
  Timer retry_;
  std::string set_name_;
  CrontabItems items_;
  std::function<void()> then_;
  bool is_started_ = false;
  bool is_wanted_ = false;
  bool is_sent_ = false;
  bool was_loaded_ = false;
};

}  // namespace pulse
