# What is fuzzed: one file here for each target, and the files that they are about.
set(PULSE_FUZZ_TARGETS
  array_literal command_line connection_options crontab duration http_address json_members
  process_command process_line query_result stderr_tail task_message variables)

set(PULSE_PARSERS
  base/http/address.cpp base/loop/boot_clock.cpp base/loop/duration.cpp
  base/postgres/array_literal.cpp base/postgres/connection_options.cpp
  base/postgres/query_result.cpp
  base/text/json_grammar.cpp base/text/json_members.cpp base/text/json_text.cpp
  base/text/stderr_tail.cpp base/text/trusted_file.cpp base/text/utf8.cpp
  worker/src/config.cpp worker/src/crontab/crontab.cpp worker/src/crontab/json5.cpp
  worker/src/jobs/execution_report.cpp worker/src/jobs/job.cpp worker/src/liveness/identity.cpp
  worker/src/task/executable/environment.cpp worker/src/task/executable/message.cpp
  worker/src/task/executable/output.cpp worker/src/task/executable/tasks_folder.cpp
  worker/src/task/executable/variables.cpp worker/src/task/process/command.cpp
  worker/src/task/process/line.cpp worker/src/task/supervised/exit_status.cpp)
