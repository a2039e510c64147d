# Run by the installation of the component `libraries`: copies the shared
# libraries that PROGRAMS need, all but those of the C library, to DESTINATION
# below the prefix, with their licences.  The programs look there first
# (tools/CMakeLists.txt).
#
# FOLDERS: where libraries of the programs' architecture are.  CMake's own
# GET_RUNTIME_DEPENDENCIES takes the first file of a name in the loader's
# folders, which may be one of another architecture.

cmake_policy(VERSION 3.18)
set(to "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${DESTINATION}")
file(MAKE_DIRECTORY "${to}")
set(ENV{LC_ALL} C)

set(queue ${PROGRAMS})
set(names)
set(found)
while(queue)
  list(POP_FRONT queue file)
  execute_process(COMMAND ${READELF} -d "${file}" OUTPUT_VARIABLE dynamic
    RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${READELF} cannot read ${file}")
  endif()
  string(REGEX MATCHALL "\\(NEEDED\\)[^\n]*" lines "${dynamic}")
  foreach(line ${lines})
    string(REGEX REPLACE "^[^[]*\\[(.*)\\].*" "\\1" name "${line}")
    if(name IN_LIST names OR name MATCHES
        "^lib(c|m|dl|rt|pthread|resolv)\\.so\\.|^ld-linux.*\\.so\\.")
      continue()
    endif()
    unset(path)
    foreach(folder ${FOLDERS})
      if(NOT path AND EXISTS "${folder}/${name}")
        set(path "${folder}/${name}")
      endif()
    endforeach()
    if(NOT path)
      message(FATAL_ERROR
        "${file} needs ${name}, which is not in any of ${FOLDERS}")
    endif()
    list(APPEND names "${name}")
    list(APPEND found "${path}")
    list(APPEND queue "${path}")
  endforeach()
endwhile()

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
