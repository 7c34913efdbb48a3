# The component `runtime`: the command, and what it reads and shows. share/routesim repeats the
# paths of the repository, so the links between its pages hold.
set(shared ${CMAKE_INSTALL_DATADIR}/routesim)
set(papers ${CMAKE_INSTALL_DATADIR}/doc/routesim)

install(TARGETS routesim RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
# Only a bundle (tools/bundle) has libraries there.
set_target_properties(routesim PROPERTIES INSTALL_RPATH
                      "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/routesim")

install(DIRECTORY scenarios docs DESTINATION ${shared} COMPONENT runtime PATTERN "*.part" EXCLUDE)
install(PROGRAMS scenarios/sweeps/slurm-array.sh DESTINATION ${shared}/scenarios/sweeps
        COMPONENT runtime)
# The pages that those of docs/ refer to.
file(GLOB_RECURSE pages RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS models/README.md
     policies/README.md sim/README.md tools/README.md workloads/README.md tests/README.md)
foreach(page IN LISTS pages ITEMS sim/custom/routesim_policy.h)
  get_filename_component(folder ${page} DIRECTORY)
  install(FILES ${page} DESTINATION ${shared}/${folder} COMPONENT runtime)
endforeach()

install(FILES ${PROJECT_BINARY_DIR}/shell/routesim.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
        COMPONENT runtime)
install(FILES ${PROJECT_BINARY_DIR}/shell/routesim.bash COMPONENT runtime RENAME routesim
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${PROJECT_BINARY_DIR}/shell/_routesim COMPONENT runtime
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${PROJECT_BINARY_DIR}/shell/routesim.fish COMPONENT runtime
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

install(FILES ${PROJECT_BINARY_DIR}/routesim.spdx.json DESTINATION ${shared} COMPONENT runtime)
# Documentation where Debian's readers look for it, without a second copy.
install(CODE "
  set(papers \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${papers}\")
  file(MAKE_DIRECTORY \"\${papers}\")
  file(CREATE_LINK ../../routesim/docs \"\${papers}/docs\" SYMBOLIC)
  file(CREATE_LINK ../../routesim/docs/examples \"\${papers}/examples\" SYMBOLIC)"
  COMPONENT runtime)
