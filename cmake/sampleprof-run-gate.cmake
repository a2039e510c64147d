# What a test of sampleprof_add_gate() does: cmake -DLIBRARY= -DREPORT= ...
# -P sampleprof-run-gate.cmake -- COMMAND [ARGUMENT...]

# ---- the words after -- ----
set(command)
set(is_command FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  if(is_command)
    list(APPEND command "${CMAKE_ARGV${i}}")
  elseif(CMAKE_ARGV${i} STREQUAL "--")
    set(is_command TRUE)
  endif()
endforeach()
list(GET command 0 program)
get_filename_component(name "${program}" NAME)

# ---- whose profile: that of what is behind an env and its assignments ----
if(PROGRAM)
  set(name "${PROGRAM}")
elseif(name STREQUAL "env")
  set(words "${command}")
  list(REMOVE_AT words 0)
  set(is_value FALSE)
  foreach(word ${words})
    if(NOT is_value AND NOT word MATCHES "^-|=")
      get_filename_component(name "${word}" NAME)
      break()
    endif()
    string(REGEX MATCH "^-[uC]$" is_value "${word}")
  endforeach()
endif()

# ---- run it ----
if(DEFINED ENV{LD_PRELOAD} AND NOT "$ENV{LD_PRELOAD}" STREQUAL "")
  set(preload "${LIBRARY}:$ENV{LD_PRELOAD}")
else()
  set(preload "${LIBRARY}")
endif()
file(REMOVE_RECURSE "${DIR}")
set(profiles)
foreach(run RANGE 1 ${RUNS})
  file(MAKE_DIRECTORY "${DIR}/run-${run}")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env "LD_PRELOAD=${preload}"
    "SAMPLEPROF_OUT=${DIR}/run-${run}" "SAMPLEPROF_PERIOD=${PERIOD}" ${command}
    RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${program} ended with ${result}")
  endif()
  file(GLOB found "${DIR}/run-${run}/${name}.*.sprof")
  list(LENGTH found n)
  if(NOT n EQUAL 1)
    message(FATAL_ERROR
      "${n} profiles of ${name} in ${DIR}/run-${run}, one was expected")
  endif()
  list(APPEND profiles ${found})
endforeach()

# ---- check ----
set(options)
if(BASELINE)
  list(APPEND options --baseline "${BASELINE}")
endif()
if("$ENV{SAMPLEPROF_UPDATE_BASELINE}")
  list(APPEND options --update-baseline)
else()
  if(LIMITS)
    list(APPEND options --limits "${LIMITS}")
  endif()
  if(LIMIT)
    string(REPLACE "\n" ";" limits "${LIMIT}")
    foreach(limit ${limits})
      list(APPEND options --limit "${limit}")
    endforeach()
  endif()
  list(APPEND options --undecided "${UNDECIDED}" --evidence "${DIR}/evidence" --format text
    --format "junit=${DIR}/junit.xml")
endif()
execute_process(COMMAND "${REPORT}" check ${profiles} ${options}
  RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "sampleprof-report check ended with ${result}")
endif()
