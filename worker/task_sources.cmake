# The part of the worker that runs executables. Paths are relative to this folder.
#
# The including file makes the targets: its library takes PULSE_TASK_SOURCES (needs libuv and
# nlohmann_json); the program pulse-minder is made of PULSE_MINDER_SOURCES with the two option lists
# below and nothing else (it links no library, and a sanitizer's runtime cannot be linked into it);
# the tests in PULSE_TASK_TESTS get the macro PULSE_MINDER_PATH, the path of pulse-minder.

set(PULSE_TASK_SOURCES
  minder/children.cpp
  src/boot_clock.cpp
  src/error_tail.cpp
  src/json_text.cpp
  src/strangers.cpp
  src/task_end.cpp
  src/task_environment.cpp
  src/task_folder.cpp
  src/task_message.cpp
  src/task_minder.cpp
  src/task_output.cpp
  src/task_pipe.cpp
  src/task_process.cpp
  src/task_stdio.cpp
  src/utf8.cpp
)

set(PULSE_MINDER_SOURCES
  minder/children.cpp
  minder/main.cpp
  minder/minder.cpp
  minder/task_start.cpp
)
# One minder stands beside every running task, so it is kept small.
set(PULSE_MINDER_COMPILE_OPTIONS -Os -fno-exceptions -fno-rtti -ffunction-sections)
set(PULSE_MINDER_LINK_OPTIONS -static -Wl,--gc-sections)

# One starts with every task, too: with musl in a third of the time that glibc takes.
find_program(PULSE_MUSL_GCC musl-gcc)
if(PULSE_MUSL_GCC AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  file(STRINGS ${PULSE_MUSL_GCC} musl_wrapper REGEX "musl-gcc[.]specs")
  string(REGEX MATCH "/[^\" ]*musl-gcc[.]specs" musl_specs "${musl_wrapper}")
  if(EXISTS "${musl_specs}")
    list(APPEND PULSE_MINDER_COMPILE_OPTIONS -specs=${musl_specs})
    list(APPEND PULSE_MINDER_LINK_OPTIONS -specs=${musl_specs} -nodefaultlibs)
    set(PULSE_MINDER_LIBRARIES c gcc)
  endif()
endif()

set(PULSE_TASK_TESTS
  ../test/worker/error_tail_test.cpp
  ../test/worker/minder_test.cpp
  ../test/worker/process_tasks_test.cpp
  ../test/worker/strangers_test.cpp
  ../test/worker/task_end_test.cpp
  ../test/worker/task_environment_test.cpp
  ../test/worker/task_escape_test.cpp
  ../test/worker/task_folder_test.cpp
  ../test/worker/task_output_test.cpp
  ../test/worker/task_process_test.cpp
  ../test/worker/task_start_test.cpp
)
