# plait::fortran: the module `plait`, compiled from plait_FORTRAN_SOURCE by the compiler that uses
# it, because .mod files belong to one version of one compiler. Used in this build and, installed,
# by find_package(plait COMPONENTS Fortran). An OBJECT library: link it directly to each program.
enable_language(Fortran) # of this folder too, where a sibling has made the target
if(NOT TARGET plait::fortran)
  add_library(plait_fortran OBJECT "${plait_FORTRAN_SOURCE}")
  set_target_properties(plait_fortran PROPERTIES
    Fortran_MODULE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/plait-fortran"
    POSITION_INDEPENDENT_CODE ON)
  target_include_directories(plait_fortran INTERFACE "${CMAKE_CURRENT_BINARY_DIR}/plait-fortran")
  target_link_libraries(plait_fortran PUBLIC plait::plait)
  add_library(plait::fortran ALIAS plait_fortran)
endif()
