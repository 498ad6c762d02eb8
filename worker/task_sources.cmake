# The part of the worker that runs executables. Paths are relative to this folder.
# The including file makes the targets: a library of PULSE_TASK_SOURCES (needs libuv and
# nlohmann_json), the program pulse-minder of PULSE_MINDER_SOURCES with the options below, and
# tests of PULSE_TASK_TESTS that are compiled with PULSE_MINDER_PATH="<path of pulse-minder>".

set(PULSE_TASK_SOURCES
  src/boot_clock.cpp
)

set(PULSE_MINDER_SOURCES
)

set(PULSE_TASK_TESTS
)
