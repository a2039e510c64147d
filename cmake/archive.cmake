# Read by cpack for each kind of package.  Only the archive has the libraries
# that the others leave to the system.
if(CPACK_GENERATOR STREQUAL TGZ)
  list(GET CPACK_INSTALL_CMAKE_PROJECTS 0 build)
  list(APPEND CPACK_INSTALL_CMAKE_PROJECTS
    "${build}" "${CPACK_PACKAGE_NAME}" libraries /)
  set(CPACK_PACKAGING_INSTALL_PREFIX /)
endif()
