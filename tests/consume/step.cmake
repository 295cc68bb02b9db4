# cmake -DSTEP=... -P step.cmake: one test of the installed package. Work happens under WORK,
# and PREFIX is the installation, moved away from the place it was installed to.
cmake_policy(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE rc OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT rc EQUAL 0)
    string(REPLACE ";" " " line "${ARGN}")
    message(FATAL_ERROR "${line}\nexit ${rc}\n${out}")
  endif()
  set(output "${out}" PARENT_SCOPE)
endfunction()

# The files below PREFIX must match the patterns, each of them at least once, and nothing else.
function(expect_files)
  file(GLOB_RECURSE files RELATIVE ${PREFIX} ${PREFIX}/*)
  foreach(pattern IN LISTS ARGN)
    set(found FALSE)
    foreach(file IN LISTS files)
      if(file MATCHES "^${pattern}$")
        set(found TRUE)
        list(REMOVE_ITEM files ${file})
      endif()
    endforeach()
    if(NOT found)
      message(SEND_ERROR "nothing was installed for ${pattern}")
    endif()
  endforeach()
  if(files)
    message(SEND_ERROR "installed, but not expected: ${files}")
  endif()
endfunction()

# Installs BUILD and moves the tree. Extra arguments go to cmake --install.
function(install_and_move)
  file(REMOVE_RECURSE ${WORK}/stage_${NAME} ${PREFIX})
  file(MAKE_DIRECTORY ${WORK}/stage_${NAME}) # a component may be empty
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/stage_${NAME} ${ARGN})
  file(RENAME ${WORK}/stage_${NAME} ${PREFIX})
endfunction()

set(lib "lib[^/]*(/[^/]+)?") # lib, lib64, lib/x86_64-linux-gnu
set(program "")
if(CLI)
  set(program "bin/plait")
endif()
set(runtime ${program} "share/plait/wisdom/[A-Z0-9_]+\\.txt")
if(KIND STREQUAL "shared")
  list(APPEND runtime "${lib}/libplait\\.so\\.[0-9.]+")
  set(linkable "${lib}/libplait\\.so")
else()
  set(linkable "${lib}/libplait\\.a")
endif()

if(STEP STREQUAL "install")
  install_and_move()
  expect_files(${runtime} ${linkable}
    "include/plait/plait\\.(h|hpp|f90)"
    "${lib}/cmake/plait/plait-(config|config-version|targets|targets-[a-z]+|fortran)\\.cmake"
    "${lib}/pkgconfig/plait\\.pc")
  # No file may remember where it was built or first installed.
  file(GLOB_RECURSE texts ${PREFIX}/*.cmake ${PREFIX}/*.pc ${PREFIX}/*.h ${PREFIX}/*.hpp)
  foreach(text IN LISTS texts)
    file(READ ${text} content)
    foreach(path IN ITEMS ${WORK} ${BUILD} ${SOURCE})
      string(FIND "${content}" "${path}" at)
      if(NOT at EQUAL -1)
        message(SEND_ERROR "${text} contains ${path}")
      endif()
    endforeach()
  endforeach()

elseif(STEP STREQUAL "runtime") # the component for machines that only run programs
  install_and_move(--component runtime)
  expect_files(${runtime})
  if(CLI)
    run(${PREFIX}/bin/plait plan --backend cpu wht:f32:n8)
  endif()

elseif(STEP STREQUAL "find_package")
  file(REMOVE_RECURSE ${WORK}/${NAME})
  run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/project -B ${WORK}/${NAME} -G ${GENERATOR}
    -DCMAKE_PREFIX_PATH=${PREFIX} -DLANGUAGE=${LANGUAGE} -DVERSION=${VERSION}
    -DCMAKE_C_COMPILER=${CC} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_Fortran_COMPILER=${FC})
  run(${CMAKE_COMMAND} --build ${WORK}/${NAME})
  run(${WORK}/${NAME}/consumer)
  message("${output}")

elseif(STEP STREQUAL "pkg-config")
  file(GLOB_RECURSE pc ${PREFIX}/plait.pc)
  get_filename_component(pc_dir ${pc} DIRECTORY)
  set(ENV{PKG_CONFIG_PATH} ${pc_dir})
  set(static "")
  if(KIND STREQUAL "static")
    set(static --static)
  endif()
  run(${PKG_CONFIG} --modversion plait)
  string(STRIP "${output}" version)
  if(NOT version STREQUAL VERSION)
    message(FATAL_ERROR "plait.pc says version ${version}, the project ${VERSION}")
  endif()
  run(${PKG_CONFIG} ${static} --cflags --libs plait)
  separate_arguments(flags UNIX_COMMAND "${output}")
  file(MAKE_DIRECTORY ${WORK}/${NAME})
  run(${CC} -std=c99 ${CMAKE_CURRENT_LIST_DIR}/main.c -o ${WORK}/${NAME}/consumer ${flags})
  get_filename_component(lib_dir ${pc_dir} DIRECTORY)
  run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${lib_dir} ${WORK}/${NAME}/consumer)
  message("${output}")

elseif(STEP STREQUAL "add_subdirectory")
  run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/subproject -B ${BUILD} -G ${GENERATOR}
    -DPLAIT_SOURCE=${SOURCE} -DCMAKE_BUILD_TYPE=Debug
    -DCMAKE_C_COMPILER=${CC} -DCMAKE_CXX_COMPILER=${CXX}
    -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER})
  run(${CMAKE_COMMAND} --build ${BUILD} --parallel)
  run(${BUILD}/consumer)
  message("${output}")

else()
  message(FATAL_ERROR "unknown STEP ${STEP}")
endif()
