# cmake -DSOURCE=... -DOUTPUT=... -P commit.cmake: writes the header that names the commit being built,
# when it is not what the header names already. Runs in every build, because a commit changes no
# file that the build would see.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#pragma once\n#define ROUTESIM_COMMIT \"${commit}\"\n")
