# What is fuzzed: one file here for each target, and the files of worker/ that they are about.
set(PULSE_FUZZ_TARGETS
  array_literal command_line connection_options crontab duration http_address json_members
  process_command process_line query_result stderr_tail task_message variables)

set(PULSE_PARSERS
  src/config.cpp src/crontab/crontab.cpp src/crontab/json5.cpp src/database/array_literal.cpp src/database/connection_options.cpp
  src/database/query_result.cpp src/executable/task_environment.cpp src/executable/task_message.cpp
  src/executable/task_output.cpp src/executable/task_variables.cpp
  src/executable/tasks_folder.cpp src/jobs/execution_report.cpp
  src/jobs/job.cpp src/liveness/identity.cpp src/loop/boot_clock.cpp src/loop/duration.cpp
  src/http/http_address.cpp src/process/process_command.cpp src/process/process_line.cpp
  src/supervised/exit_status.cpp src/text/json_grammar.cpp src/text/json_members.cpp
  src/text/json_text.cpp
  src/text/stderr_tail.cpp src/text/trusted_file.cpp src/text/utf8.cpp)
