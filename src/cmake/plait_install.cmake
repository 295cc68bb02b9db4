# What `cmake --install` writes. Components: runtime (library, program), development (the rest).
include(CMakePackageConfigHelpers)
set(_package ${CMAKE_INSTALL_LIBDIR}/cmake/plait)

install(TARGETS plait EXPORT plait-targets
  RUNTIME COMPONENT runtime
  LIBRARY COMPONENT runtime NAMELINK_COMPONENT development
  ARCHIVE COMPONENT development
  FILE_SET HEADERS COMPONENT development)
install(EXPORT plait-targets NAMESPACE plait:: DESTINATION ${_package} COMPONENT development)
install(FILES include/plait/plait.f90 DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/plait
  COMPONENT development)
# Measured times of devices, for PLAIT_WISDOM.
file(GLOB _wisdom CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/benchmarks/results/*/wisdom.txt)
foreach(_file IN LISTS _wisdom)
  get_filename_component(_device ${_file} DIRECTORY)
  get_filename_component(_device ${_device} NAME)
  install(FILES ${_file} DESTINATION ${CMAKE_INSTALL_DATADIR}/plait/wisdom RENAME ${_device}.txt
    COMPONENT runtime)
endforeach()
if(PLAIT_CLI)
  # The program finds the library of its own tree wherever that tree is moved.
  file(RELATIVE_PATH _lib_from_bin ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(plait_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${_lib_from_bin}")
  install(TARGETS plait_cli RUNTIME COMPONENT runtime)
endif()

# A shared plait asks nothing of its users. A static one leaves linking its own needs to them.
set(PLAIT_CONFIG_DEPENDENCIES "")
set(PLAIT_PC_CFLAGS "")
set(PLAIT_PC_PRIVATE "")
if(NOT BUILD_SHARED_LIBS)
  set(PLAIT_CONFIG_DEPENDENCIES "
include(CMakeFindDependencyMacro)
enable_language(CXX) # the library is C++, whatever its user is written in
find_dependency(hwy)
find_dependency(OpenMP COMPONENTS CXX)
")
  set(PLAIT_PC_CFLAGS " -DPLAIT_STATIC")
  set(_private "${OpenMP_CXX_FLAGS} -lstdc++ -lm")
  if(PLAIT_CUDA)
    string(APPEND PLAIT_CONFIG_DEPENDENCIES "find_dependency(CUDAToolkit)\n")
    string(APPEND _private " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lpthread -ldl -lrt")
  endif()
  set(PLAIT_PC_PRIVATE "Requires.private: libhwy\nLibs.private: ${_private}")
endif()

set(PLAIT_FORTRAN_FILE ${CMAKE_INSTALL_INCLUDEDIR}/plait/plait.f90)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/plait-config.cmake.in plait-config.cmake
  INSTALL_DESTINATION ${_package} PATH_VARS PLAIT_FORTRAN_FILE)
write_basic_package_version_file(plait-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/plait-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/plait-config-version.cmake
  ${CMAKE_CURRENT_LIST_DIR}/plait-fortran.cmake
  DESTINATION ${_package} COMPONENT development)

# Relative to the place of the .pc file itself, so that the tree can be moved.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(PLAIT_PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH _up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(REGEX REPLACE "/$" "" _up "${_up}")
  set(PLAIT_PC_PREFIX "\${pcfiledir}/${_up}")
endif()
foreach(_dir IN ITEMS LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${_dir}}")
    set(PLAIT_PC_${_dir} "${CMAKE_INSTALL_${_dir}}")
  else()
    set(PLAIT_PC_${_dir} "\${prefix}/${CMAKE_INSTALL_${_dir}}")
  endif()
endforeach()
configure_file(${CMAKE_CURRENT_LIST_DIR}/plait.pc.in plait.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/plait.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
  COMPONENT development)
