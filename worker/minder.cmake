# pulse-minder, the parent of every process that runs jobs. Paths are relative to this folder.
#
# The including file makes the program of PULSE_MINDER_SOURCES, with the two option lists below and
# nothing else: it links no library.

set(PULSE_MINDER_SOURCES
  minder/children.cpp
  minder/main.cpp
  minder/minder.cpp
  minder/task_start.cpp
)
# One minder stands beside every running task, so it is kept small.
set(PULSE_MINDER_COMPILE_OPTIONS -Os -fno-exceptions -fno-rtti -ffunction-sections)
set(PULSE_MINDER_LINK_OPTIONS -Wl,--gc-sections)

# A sanitizer's runtime cannot be linked into a static program. ThreadSanitizer has nothing to say of
# one thread.
if(PULSE_SANITIZE MATCHES address)
  list(APPEND PULSE_MINDER_COMPILE_OPTIONS ${PULSE_SANITIZER_OPTIONS})
  list(APPEND PULSE_MINDER_LINK_OPTIONS -fsanitize=${PULSE_SANITIZE})
  return()
endif()

# One starts with every task, too: with musl in a third of the time that glibc takes.
find_program(PULSE_MUSL_GCC musl-gcc)
if(PULSE_MUSL_GCC AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  file(STRINGS ${PULSE_MUSL_GCC} musl_wrapper REGEX "musl-gcc[.]specs")
  string(REGEX MATCH "/[^\" ]*musl-gcc[.]specs" musl_specs "${musl_wrapper}")
  if(EXISTS "${musl_specs}")
    list(APPEND PULSE_MINDER_COMPILE_OPTIONS -specs=${musl_specs})
    list(APPEND PULSE_MINDER_LINK_OPTIONS -specs=${musl_specs} -nodefaultlibs)
    set(PULSE_MINDER_LIBRARIES c gcc)
    # The folder of the objects that start a program, for a start at a random place.
    file(STRINGS ${musl_specs} musl_startfiles REGEX "/Scrt1[.]o")
    string(REGEX MATCH "/[^ }]*/Scrt1[.]o" musl_start "${musl_startfiles}")
    get_filename_component(musl_folder "${musl_start}" DIRECTORY)
  endif()
endif()

# Static, and at a random place all the same. The specs of musl know no -static-pie.
list(APPEND PULSE_MINDER_COMPILE_OPTIONS ${PULSE_HARDENED_COMPILE_OPTIONS} -fPIE)
list(APPEND PULSE_MINDER_LINK_OPTIONS ${PULSE_HARDENED_LINK_OPTIONS})
check_linker_flag(CXX -static-pie PULSE_HAS_STATIC_PIE)
if(PULSE_MINDER_LIBRARIES AND EXISTS "${musl_folder}/rcrt1.o")
  list(APPEND PULSE_MINDER_LINK_OPTIONS -static -nostartfiles
    -Wl,-pie,--no-dynamic-linker,-z,text ${musl_folder}/rcrt1.o ${musl_folder}/crti.o)
  list(APPEND PULSE_MINDER_LIBRARIES ${musl_folder}/crtn.o)
elseif(PULSE_HAS_STATIC_PIE AND NOT PULSE_MINDER_LIBRARIES)
  list(APPEND PULSE_MINDER_COMPILE_OPTIONS ${PULSE_FORTIFY_OPTIONS})
  list(APPEND PULSE_MINDER_LINK_OPTIONS -static-pie)
else()
  list(APPEND PULSE_MINDER_LINK_OPTIONS -static)
endif()
