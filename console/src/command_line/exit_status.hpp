// How pulse ends; the numbers are those of sysexits.h, as pulse-worker's.
#pragma once

namespace pulse::console {

enum class ExitStatus {
  done = 0,
  refused = 1,  // the server refused, an answer was no, or doctor warned
  usage = 64,
  no_database = 69,    // unreachable, or without the extension
  output_lost = 74,    // standard output took no more
  no_right = 77,       // the role lacks a right
  configuration = 78,  // the extension is of another version
  interrupted = 130,
};

}  // namespace pulse::console
