# What `cmake --install` puts under the prefix, besides sampleprof-report.
# The prefix can be chosen at install time: sampleprof.pc finds its own.

if(TARGET sampleprof)
  install(TARGETS sampleprof LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/sampleprof
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

file(RELATIVE_PATH SP_PC_TO_PREFIX
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" SP_PC_TO_PREFIX "${SP_PC_TO_PREFIX}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/sampleprof.pc.in
  ${PROJECT_BINARY_DIR}/sampleprof.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/sampleprof.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

foreach(section 1 7)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/man/
    DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section}
    FILES_MATCHING PATTERN "*.${section}")
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# find_package(sampleprof), for sampleprof_add_gate().
set(SP_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/sampleprof)
file(RELATIVE_PATH SP_CMAKE_TO_PREFIX
  ${CMAKE_INSTALL_FULL_LIBDIR}/cmake/sampleprof ${CMAKE_INSTALL_PREFIX})
configure_file(${CMAKE_CURRENT_LIST_DIR}/sampleprof-config.cmake.in
  ${PROJECT_BINARY_DIR}/sampleprof-config.cmake @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/sampleprof-config.cmake
  ${CMAKE_CURRENT_LIST_DIR}/sampleprof-run-gate.cmake
  DESTINATION ${SP_CMAKE_DIR})
