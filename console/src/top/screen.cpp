#include "top/screen.hpp"

// Of the names of ncurses, macros such as erase() would change names of this program.
#define NCURSES_NOMACROS
#include <curses.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>

#include "command_line/exit_status.hpp"
#include "text/width.hpp"

namespace pulse::console {
namespace {

short pair_of(Tint tint) { return static_cast<short>(static_cast<int>(tint) + 1); }

void set_up_colours() {
  start_color();
  use_default_colors();
  init_pair(pair_of(Tint::good), COLOR_GREEN, -1);
  init_pair(pair_of(Tint::busy), COLOR_CYAN, -1);
  init_pair(pair_of(Tint::warning), COLOR_YELLOW, -1);
  init_pair(pair_of(Tint::bad), COLOR_RED, -1);
}

attr_t attributes_of(Tint tint, bool has_colours) {
  switch (tint) {
    case Tint::none: return A_NORMAL;
    case Tint::strong: return A_BOLD;
    case Tint::faint: return A_DIM;
    default: return has_colours ? COLOR_PAIR(pair_of(tint)) : A_NORMAL;
  }
}

int spell_key(int code) {
  switch (code) {
    case ERR: return Screen::none;
    case KEY_UP: return Screen::up;
    case KEY_DOWN: return Screen::down;
    case KEY_PPAGE: return Screen::page_up;
    case KEY_NPAGE: return Screen::page_down;
    case KEY_HOME: return Screen::home;
    case KEY_END: return Screen::end;
    case KEY_ENTER:
    case '\n':
    case '\r': return Screen::enter;
    case '\033': return Screen::escape;
    case KEY_BACKSPACE:
    case '\b':
    case 0x7F: return Screen::erase;
    default: return code < KEY_MIN ? code : Screen::none;
  }
}

// The handler of ncurses would end the program with 1, which has another meaning.
void leave_on_interrupt(int /*number*/) {
  endwin();
  _exit(static_cast<int>(ExitStatus::interrupted));
}

bool is_able(const char* capability) {
  const char* how = tigetstr(capability);
  return how != nullptr && how != reinterpret_cast<char*>(-1);
}

}  // namespace

Screen::Screen(bool has_colours) : has_colours_(has_colours) {
  set_escdelay(25);
  // initscr() would end the program.
  if (newterm(nullptr, stdout, stdin) == nullptr) throw NoScreen("not known");
  if (!is_able("cup")) {
    endwin();
    throw NoScreen("its cursor cannot be moved");
  }
  std::signal(SIGINT, leave_on_interrupt);
  cbreak();
  noecho();
  keypad(stdscr, TRUE);
  curs_set(0);
  has_colours_ = has_colours && has_colors();
  if (has_colours_) set_up_colours();
}

Screen::~Screen() { endwin(); }

Size Screen::size() const {
  return {static_cast<std::size_t>(getmaxy(stdscr)), static_cast<std::size_t>(getmaxx(stdscr))};
}

void Screen::paint(const std::vector<Line>& lines) {
  const Size here = size();
  werase(stdscr);
  for (std::size_t row = 0; row < lines.size() && row < here.rows; ++row) {
    wmove(stdscr, static_cast<int>(row), 0);
    std::size_t left = here.columns;
    for (const Cell& cell : lines[row].cells) {
      if (left == 0) break;
      const std::string text = fit(cell.text, left);
      left -= std::min(left, width(text));
      const attr_t attributes =
          attributes_of(cell.tint, has_colours_) | (lines[row].is_selected ? A_REVERSE : A_NORMAL);
      wattrset(stdscr, static_cast<int>(attributes));
      waddstr(stdscr, text.c_str());
    }
  }
  wattrset(stdscr, A_NORMAL);
  wrefresh(stdscr);
}

int Screen::key(Duration max_wait) {
  wtimeout(stdscr, static_cast<int>(max_wait.count()));
  return spell_key(wgetch(stdscr));
}

bool Screen::is_there() {
  pollfd terminal{STDIN_FILENO, POLLIN, 0};
  return poll(&terminal, 1, 0) <= 0 || (terminal.revents & (POLLHUP | POLLERR | POLLNVAL)) == 0;
}

}  // namespace pulse::console
