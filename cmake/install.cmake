# What `cmake --install` puts where. Two components: `runtime` is the command, its scenarios and its
# documentation (install_command.cmake); `development` is the libraries, their headers and the CMake package. Two export sets, one
# per component of the CMake package, so that a router that asks for routesim::policies is not made
# to find what only the simulator needs.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(ROUTESIM_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/routesim)

# routesim_install_library(EXPORT_SET FOLDER TARGET): the archive and the headers of one module. The
# headers keep their paths from the root of the repository. A target with the property
# ROUTESIM_PUBLIC_HEADERS installs these headers and no others.
function(routesim_install_library set folder target)
  string(REPLACE "routesim_" "" name ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS ${target} EXPORT ${set}
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  if(NOT folder)
    return()
  endif()
  get_target_property(headers ${target} ROUTESIM_PUBLIC_HEADERS)
  if(NOT headers)
    file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${folder}/*.h)
  endif()
  foreach(header IN LISTS headers)
    get_filename_component(directory ${header} DIRECTORY)
    install(FILES ${PROJECT_SOURCE_DIR}/${header}
            DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/routesim/${directory} COMPONENT development)
  endforeach()
endfunction()

# Our headers need C++20 of whoever includes them.
target_compile_features(routesim_base PUBLIC cxx_std_20)

# The static libraries name the compile options as a private dependency, which CMake wants to find
# again; nobody who links the libraries inherits them.
routesim_install_library(routesim-policies "" routesim_options)
routesim_install_library(routesim-policies base routesim_base)
routesim_install_library(routesim-policies policies routesim_policies)
set(sets routesim-policies)
if(ROUTESIM_BUILD_SIM)
  routesim_install_library(routesim-sim models routesim_models)
  routesim_install_library(routesim-sim workloads routesim_workloads)
  routesim_install_library(routesim-sim sim routesim_sim)
  list(APPEND sets routesim-sim)
endif()
if(ROUTESIM_BUILD_TOOLS)
  routesim_install_library(routesim-yaml tools/ingest/tree routesim_yaml)
  list(APPEND sets routesim-yaml)
endif()

foreach(set IN LISTS sets)
  install(EXPORT ${set} FILE ${set}-targets.cmake NAMESPACE routesim::
          DESTINATION ${ROUTESIM_CMAKE_DIR} COMPONENT development)
endforeach()
configure_package_config_file(cmake/routesim-config.cmake.in
  ${PROJECT_BINARY_DIR}/cmake/routesim-config.cmake INSTALL_DESTINATION ${ROUTESIM_CMAKE_DIR})
# Before 1.0 a minor version may change anything.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/routesim-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cmake/routesim-config.cmake
              ${PROJECT_BINARY_DIR}/cmake/routesim-config-version.cmake
        DESTINATION ${ROUTESIM_CMAKE_DIR} COMPONENT development)

if(ROUTESIM_BUILD_SIM)
  # For build systems other than CMake.
  set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  file(RELATIVE_PATH pkgconfig_prefix /${pkgconfig_dir} /)
  configure_file(cmake/routesim.pc.in ${PROJECT_BINARY_DIR}/cmake/routesim.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/cmake/routesim.pc DESTINATION ${pkgconfig_dir}
          COMPONENT development)
  # The interface of policies that users bring (balancer: library), and a router that decides once.
  install(FILES sim/custom/routesim_policy.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
          COMPONENT development)
  install(FILES policies/examples/decide.cc COMPONENT development
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/routesim-dev/examples)
endif()
if(ROUTESIM_BUILD_TOOLS)
  include(cmake/install_command.cmake)
endif()
