// The live screen: the shown lists, and the actions of the keys.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "database/database.hpp"
#include "job/job_page.hpp"
#include "top/screen.hpp"
#include "top/view.hpp"

namespace pulse::console {

class Top {
 public:
  Top(Database& database, Screen& screen, Duration interval)
      : database_(database), screen_(screen), interval_(interval), choices_(panes().size()) {}

  // Runs until the user leaves, or the terminal is closed. The screen says that a database is gone,
  // and asks the database again.
  void run();

 private:
  enum class Mode { list, job, filter, question };

  const Pane& pane() const { return panes()[at_]; }
  Choice& choice() { return choices_[at_]; }

  void read();
  void refresh();
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
  void open_job();
  void ask(const Action& action);
  void act();
  void act_on_job();

  Database& database_;
  Screen& screen_;
  Duration interval_;
  std::size_t at_ = 0;
  std::vector<Choice> choices_;
  Mode mode_ = Mode::list;
  QueryResult overview_;
  QueryResult rows_;
  std::string problem_;  // of the last refresh
  std::string message_;  // of the last action
  std::string job_id_;
  std::vector<Line> job_lines_;
  std::size_t job_first_ = 0;
  Mode asked_from_ = Mode::list;
  Action asked_{};
  std::string asked_about_;
};

}  // namespace pulse::console
