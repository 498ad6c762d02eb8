#include "top/top.hpp"

#include <algorithm>

#include "base/text/inert.hpp"
#include "command_line/operation.hpp"
#include "database/pace.hpp"
#include "job/job_filter.hpp"

namespace pulse::console {
namespace {

constexpr std::size_t kHeadLines = 6;

// An answer of the server that the user should see.
std::string told(const Refused& refused) {
  return refused.error.hint.empty() ? refused.error.message
                                    : refused.error.message + ": " + refused.error.hint;
}

Line tab_line(const Watched& watched, std::size_t at) {
  Line line;
  for (std::size_t i = 0; i < watched.panes().size(); ++i) {
    const char key = static_cast<char>(watched.first_key() + static_cast<int>(i));
    const std::string title = std::string(1, key) + ' ' + watched.panes()[i].title;
    line.cells.push_back(
        {i == at ? '[' + title + ']' : ' ' + title + ' ', i == at ? Tint::strong : Tint::faint});
    line.cells.push_back({" "});
  }
  return line;
}

// The change is an operation, so that it is on record and can be undone. Returns the message for
// the user.
std::string change_job(Database& database, const std::string& name, const std::string& id) {
  const std::string filter = filter_document({}, std::vector{id});
  const QueryResult started = database.query(
      "SELECT id FROM pulse.start_operation($1, $2::json, NULL, $3)", {name, filter, actor()});
  const QueryResult run = database.query("SELECT changed FROM pulse.run_operation($1::bigint)",
                                         {started[0].text("id")});
  if (run[0].integer("changed") != 1) return "job " + id + " is not in a state to " + name;
  return name + " of job " + id + ": done; pulse undo " + started[0].text("id") + " takes it back";
}

}  // namespace

void Top::run() {
  auto next = std::chrono::steady_clock::now();
  Pace pace(interval_);
  for (;;) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= next) {
      const std::chrono::microseconds worked = refresh();
      next = std::chrono::steady_clock::now() + pace.pause_after(worked);
    }
    draw();
    const auto left = std::chrono::ceil<Duration>(next - std::chrono::steady_clock::now());
    const int key = screen_.key(std::max(left, Duration(0)));
    if (key == Screen::none ? !Screen::is_there() : !handle(key)) return;
  }
}

// Values that the screen cannot read stay as last seen.
std::chrono::microseconds Top::refresh() {
  try {
    Reading reading = watched_.read(pane(), shows_job() ? &job_ : nullptr);
    overview_ = std::move(reading.overview);
    rows_ = std::move(reading.rows);
    if (!reading.job.empty()) job_lines_ = lines_of(reading.job);
    problem_ = std::move(reading.problem);
    return reading.worked;
  } catch (const Refused& refused) {
    problem_ = told(refused);
  } catch (const Unreachable& unreachable) {
    problem_ = std::string("the database is gone, and asked again: ") + unreachable.what();
  }
  return {};
}

void Top::draw() {
  const Size size = screen_.size();
  std::vector<Line> lines;
  if (overview_.empty()) {
    lines.resize(4);
  } else {
    lines = overview_lines(overview_[0], watched_.where());
  }
  lines.push_back({{{inert(problem_.empty() ? message_ : problem_),
                     problem_.empty() ? Tint::good : Tint::bad}}});
  lines.push_back(tab_line(watched_, at_));
  const std::size_t height = size.rows > kHeadLines + 1 ? size.rows - kHeadLines - 1 : 1;
  for (Line& line : body({height, size.columns})) lines.push_back(std::move(line));
  lines.resize(std::max(lines.size(), kHeadLines + height));
  lines.resize(kHeadLines + height);
  lines.push_back(foot());
  screen_.paint(lines);
}

std::vector<Line> Top::body(Size size) {
  if (shows_job()) {
    const std::size_t first = std::min(job_first_, job_lines_.size());
    const auto begin = job_lines_.begin() + static_cast<std::ptrdiff_t>(first);
    const std::size_t count = std::min(size.rows, job_lines_.size() - first);
    return {begin, begin + static_cast<std::ptrdiff_t>(count)};
  }
  return pane_lines(pane(), rows_, choice(), size);
}

Line Top::foot() const {
  const std::string filter = choices_[at_].filter;
  switch (mode_) {
    case Mode::filter: return {{{"filter: " + inert(filter) + '_', Tint::strong}}};
    case Mode::question: return {{{inert(asked_words()) + "? [y/N]", Tint::warning}}};
    case Mode::job: return {{{"q back  r retry  c cancel  up/down scroll", Tint::faint}}};
    case Mode::list: break;
  }
  const char first = watched_.first_key();
  const char last = static_cast<char>(first + static_cast<int>(watched_.panes().size()) - 1);
  std::string keys = std::string("q quit  ") + first + '-' + last +
                     " list  up/down select  s sort  S reverse  / filter";
  if (pane().job_field != nullptr) keys += "  Enter open";
  for (const Action& action : pane().actions)
    keys += std::string("  ") + action.key + ' ' + action.name;
  if (!filter.empty()) keys += "   filter: " + inert(filter);
  return {{{keys, Tint::faint}}};
}

bool Top::handle(int key) {
  switch (mode_) {
    case Mode::list: return handle_list(key);
    case Mode::job: handle_job(key); break;
    case Mode::filter: handle_filter(key); break;
    case Mode::question: handle_question(key); break;
  }
  return true;
}

bool Top::handle_list(int key) {
  const auto pages = static_cast<long>(screen_.size().rows) - static_cast<long>(kHeadLines) - 2;
  for (const Action& action : pane().actions) {
    if (key == action.key) {
      ask(action);
      return true;
    }
  }
  const int number = key - watched_.first_key();
  const auto count = static_cast<int>(watched_.panes().size());
  if (number >= 0 && number < count) show_pane(static_cast<std::size_t>(number));
  switch (key) {
    case 'q': return false;
    case '\t': show_pane((at_ + 1) % watched_.panes().size()); break;
    case 'k':
    case Screen::up: move(-1); break;
    case 'j':
    case Screen::down: move(1); break;
    case Screen::page_up: move(-pages); break;
    case Screen::page_down: move(pages); break;
    case Screen::home: move(-static_cast<long>(rows_.size())); break;
    case Screen::end: move(static_cast<long>(rows_.size())); break;
    case 's': sort_next(); break;
    case 'S': choice().is_descending = !choice().is_descending; break;
    case '/': mode_ = Mode::filter; break;
    case Screen::enter: open_job(); break;
    case Screen::escape: choice().filter.clear(); break;
    default: break;
  }
  return true;
}

void Top::handle_job(int key) {
  const std::size_t last = job_lines_.empty() ? 0 : job_lines_.size() - 1;
  switch (key) {
    case 'q':
    case Screen::escape: mode_ = Mode::list; break;
    case 'j':
    case Screen::down: job_first_ = std::min(job_first_ + 1, last); break;
    case 'k':
    case Screen::up: job_first_ -= job_first_ == 0 ? 0 : 1; break;
    case 'r': ask({'r', "retry", nullptr}); break;
    case 'c': ask({'c', "cancel", nullptr}); break;
    default: break;
  }
}

void Top::handle_filter(int key) {
  std::string& filter = choice().filter;
  if (key == Screen::enter) {
    mode_ = Mode::list;
  } else if (key == Screen::escape) {
    filter.clear();
    mode_ = Mode::list;
  } else if (key == Screen::erase) {
    while (!filter.empty() && (static_cast<unsigned char>(filter.back()) & 0xC0) == 0x80) {
      filter.pop_back();
    }
    if (!filter.empty()) filter.pop_back();
  } else if (key >= ' ' && key < 0x100) {
    filter += static_cast<char>(key);
  }
}

void Top::handle_question(int key) {
  mode_ = asked_from_;
  if (key == 'y' || key == 'Y') {
    act();
    refresh();
  } else {
    message_ = "nothing was changed";
  }
}

void Top::show_pane(std::size_t number) {
  at_ = number;
  rows_ = QueryResult();
  message_.clear();
  refresh();
}

void Top::move(long steps) {
  const std::vector<std::size_t> visible = visible_rows(pane(), rows_, choice());
  if (visible.empty()) return;
  const auto place = static_cast<long>(selected_place(pane(), rows_, visible, choice())) + steps;
  const auto bounded = std::clamp(place, 0L, static_cast<long>(visible.size()) - 1);
  choice().selected = name_of(pane(), rows_[visible[static_cast<std::size_t>(bounded)]]);
}

// Through the columns, then back to the order of the list.
void Top::sort_next() {
  auto& column = choice().sort_column;
  if (!column) {
    column = 0;
  } else if (++*column == pane().columns.size()) {
    column.reset();
  }
}

// A row about further rows, and the row of a node that tells nothing, have no name.
RowName Top::selected_row() const {
  const std::vector<std::size_t> visible = visible_rows(pane(), rows_, choice());
  if (visible.empty()) return {};
  const auto row = rows_[visible[selected_place(pane(), rows_, visible, choice())]];
  if (pane().more_field != nullptr && row.optional_text(pane().more_field) == "t") return {};
  return name_of(pane(), row);
}

void Top::open_job() {
  if (pane().job_field == nullptr) return;
  const RowName row = selected_row();
  if (row.id.empty()) return;
  job_ = choice().selected = row;
  job_first_ = 0;
  job_lines_.clear();
  mode_ = Mode::job;
  refresh();
}

void Top::ask(const Action& action) {
  asked_about_ = mode_ == Mode::job ? job_ : selected_row();
  if (asked_about_.id.empty()) return;
  if (mode_ == Mode::list) choice().selected = asked_about_;
  asked_from_ = mode_;
  asked_ = action;
  mode_ = Mode::question;
}

std::string Top::asked_words() const {
  const std::string of_node = asked_about_.node.empty() ? "" : " of node " + asked_about_.node;
  return std::string(asked_.name) + ' ' + pane().noun + ' ' + asked_about_.id + of_node;
}

void Top::act() {
  const std::string words = asked_words();
  try {
    message_ = watched_.change(asked_about_,
                               [action = asked_, words, id = asked_about_.id](Database& database) {
                                 if (action.sql == nullptr)
                                   return change_job(database, action.name, id);
                                 database.query(action.sql, {id});
                                 return words + ": done";
                               });
  } catch (const Refused& refused) {
    message_ = told(refused);
  } catch (const Unreachable& unreachable) {
    message_ = std::string("not known whether it was done: ") + unreachable.what();
  }
}

}  // namespace pulse::console
