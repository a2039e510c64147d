# Run by the installation of the component `libraries`: copies the shared
# libraries that PROGRAMS need, all but those of the C library, to DESTINATION
# below the prefix, with their licences.  The programs look there first
# (tools/CMakeLists.txt).

set(to "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${DESTINATION}")
file(MAKE_DIRECTORY "${to}")
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${PROGRAMS}
  RESOLVED_DEPENDENCIES_VAR found
  PRE_EXCLUDE_REGEXES
  "^lib(c|m|dl|rt|pthread|resolv)\\.so\\." "^ld-linux.*\\.so\\.")
foreach(library ${found})
  # Under the name by which it is needed; a link's file is copied.
  get_filename_component(name "${library}" NAME)
  get_filename_component(real "${library}" REALPATH)
  execute_process(COMMAND ${CMAKE_COMMAND} -E copy "${real}" "${to}/${name}"
    RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "cannot copy ${library} to ${to}")
  endif()
  # dpkg may know a file of /usr/lib as one of /lib.
  string(REGEX REPLACE "^/usr" "" other "${real}")
  foreach(path "${real}" "${other}" "/usr${real}")
    execute_process(COMMAND dpkg-query -S "${path}" OUTPUT_VARIABLE owner
      ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed)
      string(REGEX REPLACE ":.*" "" owner "${owner}")
      execute_process(COMMAND ${CMAKE_COMMAND} -E copy
        "/usr/share/doc/${owner}/copyright" "${to}/licences/${owner}")
      break()
    endif()
  endforeach()
endforeach()
