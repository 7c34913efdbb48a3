# `cpack -G DEB` in the build directory makes routesim (the command) and routesim-dev (libraries,
# headers, CMake package). dpkg-shlibdeps (package dpkg-dev), with the help of file (package file),
# finds the shared libraries the command needs.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME routesim)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_PACKAGE_CONTACT "The routesim authors <maintainers@routesim.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime development)
if(NOT ROUTESIM_BUILD_TOOLS)
  set(CPACK_COMPONENTS_ALL development)
endif()

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME routesim)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME routesim-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libmuparser-dev, libyaml-cpp-dev")  # what our archives are linked with
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION
    "The routesim command, its scenarios and its documentation: which routing\npolicy, and how many servers, for this traffic and these latency goals.")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
    "Headers and static libraries of the routing policies and of the simulator,\nwith their CMake package.")

# The papers that every Debian package has: the licence, and two changelogs. Their day is that of the
# commit, so that the same commit makes the same package.
execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} log -1 --format=%ct ERROR_QUIET
                OUTPUT_VARIABLE commit_time OUTPUT_STRIP_TRAILING_WHITESPACE)
if(commit_time AND NOT DEFINED ENV{SOURCE_DATE_EPOCH})
  set(ENV{SOURCE_DATE_EPOCH} ${commit_time})
endif()
string(TIMESTAMP package_date "%a, %d %b %Y %H:%M:%S +0000" UTC)
set(papers ${PROJECT_BINARY_DIR}/package)
foreach(paper copyright changelog.Debian)
  configure_file(cmake/debian/${paper}.in ${papers}/${paper} @ONLY)
endforeach()
configure_file(CHANGELOG.md ${papers}/changelog COPYONLY)
execute_process(COMMAND gzip -9nf changelog changelog.Debian WORKING_DIRECTORY ${papers})
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  install(FILES ${papers}/copyright ${papers}/changelog.gz ${papers}/changelog.Debian.gz
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME}
          COMPONENT ${component})
endforeach()
include(CPack)
