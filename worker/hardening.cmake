# What is installed withstands what Debian's packages withstand: canaries on stacks, sizes that libc
# checks, addresses that are read-only before main() begins, and code at a random place. Tests are
# built without these flags, and so is what a sanitizer watches. Flags of a packager win.

include(CheckLinkerFlag)
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)

set(PULSE_HARDENED_COMPILE_OPTIONS -fstack-protector-strong)
set(PULSE_HARDENED_LINK_OPTIONS -Wl,-z,relro,-z,now)
# Without optimisation libc warns that it checks nothing.
if(NOT "${CMAKE_CXX_FLAGS}" MATCHES "_FORTIFY_SOURCE")
  set(PULSE_FORTIFY_OPTIONS
    "$<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
endif()

function(pulse_hardened target)
  if(NOT PULSE_SANITIZE)
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_compile_options(${target} PRIVATE
      ${PULSE_HARDENED_COMPILE_OPTIONS} ${PULSE_FORTIFY_OPTIONS})
    target_link_options(${target} PRIVATE ${PULSE_HARDENED_LINK_OPTIONS})
  endif()
endfunction()
