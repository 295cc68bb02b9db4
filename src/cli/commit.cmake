# Writes commit.h, only if it changed: the program is not rebuilt for nothing.
if(NOT COMMIT AND GIT)
  execute_process(COMMAND ${GIT} describe --always --dirty WORKING_DIRECTORY ${SOURCE}
    OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT COMMIT)
  set(COMMIT unknown)
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define PLAIT_COMMIT \"${COMMIT}\"\n")
