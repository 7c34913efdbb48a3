# One place for the language level, warnings, determinism flags, sanitizers and the compiler cache.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(ROUTESIM_CCACHE ccache)
if(ROUTESIM_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Precompiled headers need the two sloppiness settings to be cacheable at all.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${ROUTESIM_CCACHE})
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  # Without time stamps the same precompiled header has the same bytes, so ccache can find it.
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
endif()

add_library(routesim_options INTERFACE)
target_compile_options(routesim_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  # Law 7: the same bytes from gcc and clang, so no fused multiply-add behind our back.
  -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 warns of overlaps in `"literal" + std::string` that are not there (GCC bug 105651).
  target_compile_options(routesim_options INTERFACE -Wno-restrict)
endif()
if(ROUTESIM_WERROR)
  target_compile_options(routesim_options INTERFACE -Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # These find flows in inlined standard headers that no run can take; GCC 13 finds fewer.
    target_compile_options(routesim_options INTERFACE -Wno-error=maybe-uninitialized
      -Wno-error=array-bounds -Wno-error=stringop-overflow)
  endif()
endif()
target_include_directories(routesim_options INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)

# Hardens what ships as Debian hardens its own packages: stack protector, checked copies (Fortify),
# and relocations that are read-only after the start. The compilers of Debian and Ubuntu make
# position-independent programs by default. Sanitizers check more, and Fortify would hide overruns
# from them.
if(NOT ROUTESIM_SANITIZE)
  add_compile_options(-fstack-protector-strong
    $<$<CONFIG:Release,RelWithDebInfo>:-U_FORTIFY_SOURCE>
    $<$<CONFIG:Release,RelWithDebInfo>:-D_FORTIFY_SOURCE=2>)
  add_link_options(-Wl,-z,relro -Wl,-z,now)
endif()

if(ROUTESIM_SANITIZE)
  string(REPLACE "," "," _sanitize "${ROUTESIM_SANITIZE}")
  add_compile_options(-fsanitize=${_sanitize} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${_sanitize})
endif()

# Precompiled headers cost about three seconds each, so all libraries share one and all tests
# another. They must stay headers that seldom change: never one of ours.
set(ROUTESIM_PRECOMPILED <algorithm> <array> <cstdint> <functional> <map> <memory> <optional> <span>
    <string> <string_view> <unordered_map> <utility> <variant> <vector>)

# routesim_add_precompiled(NAME [LIBS ...] HEADERS ...): a target that exists for its precompiled
# header. LIBS brings the macros that its users will have: a compiler refuses one made with others.
function(routesim_add_precompiled name)
  cmake_parse_arguments(ARG "" "" "LIBS;HEADERS" ${ARGN})
  set(source ${PROJECT_BINARY_DIR}/cmake/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Carries a precompiled header.\n")
  add_library(${name} OBJECT ${source})
  target_link_libraries(${name} PRIVATE routesim_options ${ARG_LIBS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()

# The standard headers nearly every file uses.
routesim_add_precompiled(routesim_precompiled HEADERS ${ROUTESIM_PRECOMPILED})
function(routesim_precompile target)
  target_precompile_headers(${target} REUSE_FROM routesim_precompiled)
endfunction()

# Code that a command passes once, at its beginning or its end, is compiled longer than it ever
# runs: it is optimised lightly. A compiler refuses a header precompiled with other flags.
set(ROUTESIM_LIGHT $<$<CONFIG:Release>:-O1>)
routesim_add_precompiled(routesim_precompiled_light HEADERS ${ROUTESIM_PRECOMPILED})
target_compile_options(routesim_precompiled_light PRIVATE ${ROUTESIM_LIGHT})
function(routesim_precompile_light target)
  target_compile_options(${target} PRIVATE ${ROUTESIM_LIGHT})
  target_precompile_headers(${target} REUSE_FROM routesim_precompiled_light)
endfunction()
