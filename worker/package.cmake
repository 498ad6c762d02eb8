# What a program needs that runs handlers: the library and its header, found by CMake
# (find_package(pg_pulse), target pg_pulse::worker) and by pkg-config (pg_pulse_worker). Paths in
# these files are relative to themselves, so that a tree can be moved.

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/pg_pulse)
file(WRITE ${PROJECT_BINARY_DIR}/pg_pulse-config.cmake
  "include(\"\${CMAKE_CURRENT_LIST_DIR}/pg_pulse-targets.cmake\")\n")
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(pg_pulse-config-version.cmake COMPATIBILITY SameMinorVersion)
configure_file(pg_pulse_worker.pc.in pg_pulse_worker.pc @ONLY)

install(TARGETS pg_pulse_worker EXPORT pg_pulse LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/pulse DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT pg_pulse NAMESPACE pg_pulse:: FILE pg_pulse-targets.cmake
  DESTINATION ${package_folder})
install(FILES ${PROJECT_BINARY_DIR}/pg_pulse-config.cmake
  ${PROJECT_BINARY_DIR}/pg_pulse-config-version.cmake DESTINATION ${package_folder})
install(FILES ${PROJECT_BINARY_DIR}/pg_pulse_worker.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
