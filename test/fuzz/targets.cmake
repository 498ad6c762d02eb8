# What is fuzzed: one file here for each target, and the files of worker/ that they are about.
set(PULSE_FUZZ_TARGETS
  array_literal command_line connection_options duration error_tail http_address
  process_command process_line rows task_message)

set(PULSE_PARSERS
  src/array_literal.cpp src/boot_clock.cpp src/config.cpp src/connection_options.cpp
  src/duration.cpp src/error_tail.cpp src/http_address.cpp src/identity.cpp
  src/job.cpp src/json_text.cpp src/process_command.cpp src/process_line.cpp src/rows.cpp
  src/task.cpp src/task_end.cpp src/task_environment.cpp src/task_folder.cpp src/task_message.cpp
  src/task_output.cpp src/utf8.cpp)
