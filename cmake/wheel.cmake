# What a Python wheel of tools/python holds beside its modules, below site-packages/routesim: laid out
# like an installed prefix, so that the command finds its scenarios in ../share/routesim.
install(TARGETS routesim RUNTIME DESTINATION bin COMPONENT wheel EXCLUDE_FROM_ALL)
install(DIRECTORY scenarios DESTINATION share/routesim COMPONENT wheel EXCLUDE_FROM_ALL
        PATTERN "*.part" EXCLUDE)
file(GLOB schemas CONFIGURE_DEPENDS docs/reference/*.schema.json)
install(FILES ${schemas} DESTINATION share/routesim/schemas COMPONENT wheel EXCLUDE_FROM_ALL)
# The licence, and the notices of what the program and the libraries beside it contain.
foreach(notice LICENSE docs/third-party.md)
  if(EXISTS ${PROJECT_SOURCE_DIR}/${notice})
    install(FILES ${notice} DESTINATION share/routesim COMPONENT wheel EXCLUDE_FROM_ALL)
  endif()
endforeach()
