# cmake -DSOURCE=DIR -DPAGE=NAME -DHEAD=FILE -DTAIL=FILE -P page.cmake
#
# A page of src/export/html, page or rss, as two files, what comes before its data and what
# comes after.  Its policy names style and script by their hashes: the browser
# runs nothing else.

# What runs, in this order.
set(scripts_page special estimate strata model tree format shorten pair rename
  caveats layer colours flame place svg timeline bar table changes sizes resident
  summary state app)
set(scripts_rss format bar resident rss)

# base64 of the SHA-256 of a text.
function(policy_hash text result)
  set(digits
    ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  string(SHA256 hex "${text}")
  set(base64)
  # 32 bytes: ten groups of three, and one of two that a zero byte fills up.
  foreach(group RANGE 10)
    math(EXPR at "${group} * 6")
    string(SUBSTRING "${hex}00" ${at} 6 three)
    foreach(shift 18 12 6 0)
      math(EXPR digit "(0x${three} >> ${shift}) & 63")
      string(SUBSTRING ${digits} ${digit} 1 digit)
      string(APPEND base64 ${digit})
    endforeach()
  endforeach()
  string(REGEX REPLACE ".$" "=" base64 "${base64}")
  set(${result} "sha256-${base64}" PARENT_SCOPE)
endfunction()

# CMake's lists and its script language would change brackets and semicolons:
# they are never expanded here, only replaced as text.
file(READ ${SOURCE}/${PAGE}.html page)
file(READ ${SOURCE}/resident.html resident)
string(REPLACE "@RESIDENT@" "${resident}" page "${page}")
file(READ ${SOURCE}/page.css style)
file(READ ${SOURCE}/dark.css dark)
string(REPLACE "@DARK@" "${dark}" style "${style}")
set(script)
foreach(name ${scripts_${PAGE}})
  file(READ ${SOURCE}/${name}.js part)
  string(APPEND script "${part}")
endforeach()
set(script "(() => {\n'use strict';\n${script}})();\n")

policy_hash("${style}" style_hash)
policy_hash("${script}" script_hash)
string(REPLACE "@STYLE_HASH@" "${style_hash}" page "${page}")
string(REPLACE "@SCRIPT_HASH@" "${script_hash}" page "${page}")
string(REPLACE "@STYLE@" "${style}" page "${page}")
string(REPLACE "@SCRIPT@" "${script}" page "${page}")
string(FIND "${page}" "@DATA@" at)
if(at EQUAL -1)
  message(FATAL_ERROR "${SOURCE}/${PAGE}.html has no place for the data")
endif()
string(SUBSTRING "${page}" 0 ${at} head)
math(EXPR at "${at} + 6")
string(SUBSTRING "${page}" ${at} -1 tail)
file(WRITE ${HEAD} "${head}")
file(WRITE ${TAIL} "${tail}")
