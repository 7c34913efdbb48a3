# cmake -DSOURCE=... -DOUTPUT=... -P commit.cmake: writes the header that names the commit being built,
# when it is not what the header names already. Runs in every build, because a commit changes no
# file that the build would see.
#
# A checkout with changes is COMMIT-dirty, and COMMIT-dirty.HASH where they reach the program: the hash
# is of the contents of what is changed or new, so that the results of two such builds are told apart.
set(compiled policies models workloads sim tools cmake CMakeLists.txt CMakePresets.json ":(exclude)*.md")

function(git output)
  execute_process(COMMAND git -C ${SOURCE} -c core.quotePath=off ${ARGN} OUTPUT_VARIABLE text
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(${output} "${text}" PARENT_SCOPE)
endfunction()

git(commit describe --always --dirty --abbrev=12)
if(commit)
  git(changed diff --name-only --relative --no-renames HEAD -- ${compiled})
  git(new ls-files --others --exclude-standard -- ${compiled})
  string(REPLACE "\n" ";" files "${changed}\n${new}")
  set(state "")
  foreach(file IN LISTS files)
    if(EXISTS "${SOURCE}/${file}" AND NOT IS_DIRECTORY "${SOURCE}/${file}")
      file(SHA256 "${SOURCE}/${file}" content)
      string(APPEND state "${file} ${content}\n")
    elseif(NOT file STREQUAL "")
      string(APPEND state "${file} removed\n")
    endif()
  endforeach()
  if(state)
    string(SHA256 hash "${state}")
    string(SUBSTRING ${hash} 0 12 hash)
    string(REGEX REPLACE "-dirty$" "" commit "${commit}")
    string(APPEND commit "-dirty.${hash}")
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#pragma once\n#define ROUTESIM_COMMIT \"${commit}\"\n")
