# What `cmake --install` puts under the prefix, besides the programs of tools/.
# All of it moves with its prefix: sampleprof.pc and the programs find the rest
# relative to themselves.  There are three components: `agent` is the library
# that is preloaded, which needs the C library alone; `tools` is the rest; and
# `libraries`, which nobody gets unasked: what the programs need of other
# packages, for an archive that runs on any system.

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME tools)
find_program(GZIP_EXECUTABLE gzip)
if(NOT GZIP_EXECUTABLE)
  message(FATAL_ERROR "man pages are installed compressed: gzip is missing")
endif()
# The time is left out, so that the same tree makes the same file.
set(SP_GZIP ${GZIP_EXECUTABLE} -9nc)

# A folder of its own: it is no library to link with, and has no SONAME.
if(TARGET sampleprof)
  install(TARGETS sampleprof LIBRARY DESTINATION ${SP_PRIVATE_LIBDIR}
    COMPONENT agent)
endif()
get_target_property(SP_AGENT_DIR sp_agent_core BINARY_DIR)
if(TARGET sampleprof-unwind)
  install(FILES ${SP_AGENT_DIR}/libsampleprof-unwind.so
    DESTINATION ${SP_PRIVATE_LIBDIR} COMPONENT agent)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/sampleprof
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

# Every pkg-config looks into share, not every one into the same lib.
set(SP_PC_DIR ${CMAKE_INSTALL_DATADIR}/pkgconfig)
file(RELATIVE_PATH SP_PC_TO_PREFIX
  ${CMAKE_INSTALL_FULL_DATADIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" SP_PC_TO_PREFIX "${SP_PC_TO_PREFIX}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/sampleprof.pc.in
  ${PROJECT_BINARY_DIR}/sampleprof.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/sampleprof.pc DESTINATION ${SP_PC_DIR})

# ---- man pages ----

# sp_install_page(FILE NAME COMPONENT)
function(sp_install_page file name component)
  string(REGEX REPLACE ".*\\." "" section ${name})
  set(made ${PROJECT_BINARY_DIR}/man/${name}.gz)
  add_custom_command(OUTPUT ${made} DEPENDS ${file} VERBATIM
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/man
    COMMAND ${SP_GZIP} ${file} > ${made})
  set_property(GLOBAL APPEND PROPERTY SP_COMPRESSED ${made})
  install(FILES ${made} COMPONENT ${component}
    DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endfunction()

set(man ${PROJECT_SOURCE_DIR}/docs/man)
sp_install_page(${man}/sampleprof.7 sampleprof.7 agent)
foreach(page sampleprof.1 sampleprof-report.1 sampleprof-lab.1)
  sp_install_page(${man}/${page} ${page} tools)
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/sampleprof-serve.1
  CONTENT ".so man1/sampleprof.1\n")
sp_install_page(${PROJECT_BINARY_DIR}/sampleprof-serve.1 sampleprof-serve.1
  tools)

# ---- the licence, and what changed ----

file(STRINGS ${PROJECT_SOURCE_DIR}/docs/CHANGELOG.md SP_RELEASE
  REGEX "^## [0-9]" LIMIT_COUNT 1)
if(NOT SP_RELEASE MATCHES
   "^## ${PROJECT_VERSION} - ([0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9])$")
  message(FATAL_ERROR "docs/CHANGELOG.md begins with \"${SP_RELEASE}\", not "
    "with \"## ${PROJECT_VERSION} - YEAR-MONTH-DAY\"")
endif()
set(SP_RELEASE_DATE ${CMAKE_MATCH_1})
set(compressed ${PROJECT_BINARY_DIR}/changelog.gz)
add_custom_command(OUTPUT ${compressed} VERBATIM
  DEPENDS ${PROJECT_SOURCE_DIR}/docs/CHANGELOG.md
  COMMAND ${SP_GZIP} ${PROJECT_SOURCE_DIR}/docs/CHANGELOG.md > ${compressed})
set_property(GLOBAL APPEND PROPERTY SP_COMPRESSED ${compressed})
foreach(component agent tools)
  if(component STREQUAL agent)
    set(SP_AGENT_DOCDIR ${CMAKE_INSTALL_DATADIR}/doc/sampleprof-agent)
    set(docs ${SP_AGENT_DOCDIR})
  else()
    set(docs ${CMAKE_INSTALL_DOCDIR})
  endif()
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${docs}
    RENAME copyright COMPONENT ${component})
  install(FILES ${compressed} DESTINATION ${docs} COMPONENT ${component})
endforeach()
# What the licence of a copy of libunwind asks for.
set(theirs /usr/share/doc/libunwind-dev/copyright)
if(TARGET sampleprof-unwind AND EXISTS ${theirs})
  install(FILES ${theirs} DESTINATION ${SP_AGENT_DOCDIR}
    RENAME copyright.libunwind COMPONENT agent)
endif()
get_property(all GLOBAL PROPERTY SP_COMPRESSED)
add_custom_target(sampleprof-compressed ALL DEPENDS ${all})

# ---- find_package(sampleprof), for sampleprof_add_gate() ----

set(SP_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/sampleprof)
file(RELATIVE_PATH SP_CMAKE_TO_PREFIX
  ${CMAKE_INSTALL_FULL_LIBDIR}/cmake/sampleprof ${CMAKE_INSTALL_PREFIX})
configure_file(${CMAKE_CURRENT_LIST_DIR}/sampleprof-config.cmake.in
  ${PROJECT_BINARY_DIR}/sampleprof-config.cmake @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/sampleprof-config.cmake
  ${CMAKE_CURRENT_LIST_DIR}/sampleprof-run-gate.cmake
  DESTINATION ${SP_CMAKE_DIR})

# ---- what the programs need of other packages ----

set(programs)
foreach(target sampleprof-command sampleprof-report sampleprof-serve)
  string(APPEND programs " \"$<TARGET_FILE:${target}>\"")
endforeach()
# Debian's folders of one architecture and the administrator's own; or those of
# a system that has just one.
if(CMAKE_LIBRARY_ARCHITECTURE)
  set(folders /usr/local/lib/${CMAKE_LIBRARY_ARCHITECTURE}
    /lib/${CMAKE_LIBRARY_ARCHITECTURE} /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}
    /usr/local/lib)
else()
  set(folders /usr/local/lib64 /usr/local/lib /lib64 /usr/lib64 /lib /usr/lib)
endif()
install(CODE "set(PROGRAMS ${programs})
set(READELF \"${CMAKE_READELF}\")
set(FOLDERS ${folders})
set(DESTINATION \"${SP_PRIVATE_LIBDIR}\")
include(\"${CMAKE_CURRENT_LIST_DIR}/libraries.cmake\")"
  COMPONENT libraries EXCLUDE_FROM_ALL)
