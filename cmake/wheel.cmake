# What a Python wheel of tools/python holds beside its modules, below site-packages/routesim: laid out
# like an installed prefix, so that the command finds its scenarios in ../share/routesim. That folder
# repeats the paths of the repository.
set(shared share/routesim)
install(TARGETS routesim RUNTIME DESTINATION bin COMPONENT wheel EXCLUDE_FROM_ALL)
install(DIRECTORY scenarios DESTINATION ${shared} COMPONENT wheel EXCLUDE_FROM_ALL
        PATTERN "*.part" EXCLUDE)
install(DIRECTORY docs/examples DESTINATION ${shared}/docs COMPONENT wheel EXCLUDE_FROM_ALL)
install(DIRECTORY docs/reference DESTINATION ${shared}/docs COMPONENT wheel EXCLUDE_FROM_ALL
        FILES_MATCHING PATTERN "*.schema.json")
# The licence, and the notices of what the program and the libraries beside it contain.
install(FILES LICENSE DESTINATION ${shared} COMPONENT wheel EXCLUDE_FROM_ALL)
install(FILES docs/third-party.md DESTINATION ${shared}/docs COMPONENT wheel EXCLUDE_FROM_ALL
        OPTIONAL)
