# `cpack -G DEB` in the build directory makes routesim (the command) and routesim-dev (libraries,
# headers, CMake package). dpkg-shlibdeps (package dpkg-dev), with the help of file (package file),
# finds the shared libraries the command needs.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME routesim)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "routesim maintainers <maintainers@routesim.invalid>")
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
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION
    "The routesim command and its scenarios: which routing policy, and how many servers,\nfor this traffic and these latency goals.")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
    "Headers and static libraries of the routing policies and of the simulator,\nwith their CMake package.")
include(CPack)
