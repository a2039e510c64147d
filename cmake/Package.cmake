# Packages by cpack: an archive that runs from any folder, Debian's and rpm's.
# `sampleprof-agent` is the library, which needs the C library alone, and
# `sampleprof` the programs.  What they need of the C library is as old as that
# where they are built: tests/compat/packages/run builds them on Debian 11.

set(CPACK_PACKAGE_VENDOR "The sampleprof authors")
set(CPACK_PACKAGE_CONTACT "The sampleprof authors <sampleprof@sampleprof.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "heap profiler for native programs")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
  WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL agent tools)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/archive.cmake)
string(TOLOWER ${CMAKE_SYSTEM_PROCESSOR} processor)
string(REPLACE amd64 x86_64 processor ${processor})
set(CPACK_SYSTEM_NAME linux-${processor})
set(CPACK_GENERATOR TGZ)

set(CPACK_COMPONENT_AGENT_DESCRIPTION
  "It is preloaded into a program (LD_PRELOAD), samples the allocations of
the program at random, counts the totals exactly, and writes a profile.
It needs the C library alone.")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION
  "It shows which functions allocate memory, what stays alive and what was
alive at the peak, at a cost of 1 to 2 %, without rebuilding the program.
Each estimate has a confidence interval.")

# ---- Debian ----

find_program(DPKG_SHLIBDEPS dpkg-shlibdeps)
find_program(DATE_EXECUTABLE date)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_AGENT_PACKAGE_NAME sampleprof-agent)
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME sampleprof)
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS
  "sampleprof-agent (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
  set(CPACK_RPM_PACKAGE_ARCHITECTURE aarch64)
else()
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE amd64)
endif()
if(DPKG_SHLIBDEPS)
  list(APPEND CPACK_GENERATOR DEB)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C
    ${DATE_EXECUTABLE} -R -u -d ${SP_RELEASE_DATE}
    OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE)
  foreach(component agent tools)
    string(TOUPPER ${component} upper)
    set(name ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
    set(file ${PROJECT_BINARY_DIR}/${name}.changelog)
    file(WRITE ${file} "${name} (${PROJECT_VERSION}-\
${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * ${PROJECT_VERSION}: see changelog.gz.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
    set(made ${PROJECT_BINARY_DIR}/debian/${name}/changelog.Debian.gz)
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/debian/${name})
    execute_process(COMMAND ${SP_GZIP} ${file} OUTPUT_FILE ${made})
    install(FILES ${made} COMPONENT ${component}
      DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name})
  endforeach()
endif()

# ---- rpm ----

find_program(RPMBUILD_EXECUTABLE rpmbuild)
if(RPMBUILD_EXECUTABLE)
  list(APPEND CPACK_GENERATOR RPM)
endif()
set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE MIT)
set(CPACK_RPM_PACKAGE_RELEASE 1)
# Whoever reads sampleprof.pc has pkg-config; the programs need none.
set(CPACK_RPM_SPEC_MORE_DEFINE
  "%global __requires_exclude ^/usr/bin/pkg-config$")
# Old systems read it as well.
set(CPACK_RPM_COMPRESSION_TYPE gzip)
set(CPACK_RPM_AGENT_PACKAGE_NAME sampleprof-agent)
set(CPACK_RPM_TOOLS_PACKAGE_NAME sampleprof)
set(CPACK_RPM_TOOLS_PACKAGE_REQUIRES
  "sampleprof-agent = ${PROJECT_VERSION}-${CPACK_RPM_PACKAGE_RELEASE}")
# Folders that belong to others.
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION
  /usr/share/man /usr/share/man/man1 /usr/share/man/man7
  /usr/share/pkgconfig /usr/share/bash-completion
  /usr/share/bash-completion/completions /usr/lib/cmake)

include(CPack)
