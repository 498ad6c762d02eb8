// The live screen: the shown lists, and the actions of the keys.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "top/screen.hpp"
#include "top/view.hpp"
#include "top/watched.hpp"

namespace pulse::console {

class Top {
 public:
  Top(Watched& watched, Screen& screen, Duration interval)
      : watched_(watched), screen_(screen), interval_(interval), choices_(watched.panes().size()) {}

  // Runs until the user leaves, or the terminal is closed. The screen says that a database is gone,
  // and asks it again.
  void run();

 private:
  enum class Mode { list, job, filter, question };

  bool shows_job() const {
    return mode_ == Mode::job || (mode_ == Mode::question && asked_from_ == Mode::job);
  }
  const Pane& pane() const { return watched_.panes()[at_]; }
  Choice& choice() { return choices_[at_]; }
  const Choice& choice() const { return choices_[at_]; }

  // Returns the time that the server worked.
  std::chrono::microseconds refresh();
  void draw();
  std::vector<Line> body(Size size);
  Line foot() const;

  // False: the user leaves.
  bool handle(int key);
  bool handle_list(int key);
  void handle_job(int key);
  void handle_filter(int key);
  void handle_question(int key);

  void show_pane(std::size_t number);
  void move(long steps);
  void sort_next();
  RowName selected_row() const;
  void open_job();
  void ask(const Action& action);
  void act();
  // The question of the user in words: "pause queue post".
  std::string asked_words() const;

  Watched& watched_;
  Screen& screen_;
  Duration interval_;
  std::size_t at_ = 0;
  std::vector<Choice> choices_;
  Mode mode_ = Mode::list;
  QueryResult overview_;
  QueryResult rows_;
  std::string problem_;  // of the last refresh
  std::string message_;  // of the last action
  RowName job_;
  std::vector<Line> job_lines_;
  std::size_t job_first_ = 0;
  Mode asked_from_ = Mode::list;
  Action asked_{};
  RowName asked_about_;
};

}  // namespace pulse::console
