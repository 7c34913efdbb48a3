# The wheel of tools/python from a build folder that is there already: `cmake --build` brings its program up to date, and
# its component `wheel` is installed as it is.
add_custom_target(routesim COMMAND ${CMAKE_COMMAND} --build ${ROUTESIM_PREBUILT} --target routesim
                  USES_TERMINAL VERBATIM)
install(CODE "execute_process(
    COMMAND \"${CMAKE_COMMAND}\" --install \"${ROUTESIM_PREBUILT}\" --component wheel --strip
            --prefix \"\${CMAKE_INSTALL_PREFIX}\"
    COMMAND_ERROR_IS_FATAL ANY)" COMPONENT wheel)
