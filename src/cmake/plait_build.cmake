# How every object of plait is compiled. Included once by the top-level CMakeLists.txt.

set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 99)
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

# One interface target carries the options, so that no folder repeats them.
add_library(plait_options INTERFACE)
target_include_directories(plait_options INTERFACE
  ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
target_compile_options(plait_options INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra>
  $<$<COMPILE_LANGUAGE:CXX>:-Wpedantic>
  $<$<AND:$<BOOL:${PLAIT_WERROR}>,$<COMPILE_LANGUAGE:C,CXX>>:-Werror>
  # Kernels are many and alike: what they take in the library falls to a third.
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall;-Xcompiler=-Wextra;--compress-mode=size>)
if(PLAIT_WERROR)
  # A kernel that spills or keeps an array in local memory does not pass.
  target_compile_options(plait_options INTERFACE
    $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;-Xptxas=-warn-spills,-warn-lmem-usage,-Werror>)
endif()
if(PLAIT_SANITIZE)
  target_compile_options(plait_options INTERFACE
    $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${PLAIT_SANITIZE};-fno-sanitize-recover=all;-fno-omit-frame-pointer>)
  target_link_options(plait_options INTERFACE -fsanitize=${PLAIT_SANITIZE})
endif()

# plait_objects(name [STRICT] file...): an object library that becomes part of plait.
# STRICT: host code without CUDA headers, where sizes overflow: -Wconversion.
function(plait_objects name)
  cmake_parse_arguments(arg "STRICT" "" "" ${ARGN})
  add_library(${name} OBJECT ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE plait_options)
  target_compile_definitions(${name} PRIVATE PLAIT_BUILDING
    $<$<NOT:$<BOOL:${BUILD_SHARED_LIBS}>>:PLAIT_STATIC>)
  if(arg_STRICT)
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wconversion>)
  endif()
  set_property(GLOBAL APPEND PROPERTY PLAIT_OBJECTS ${name})
endfunction()
