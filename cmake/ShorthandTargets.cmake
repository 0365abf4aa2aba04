# How every target of the project is built, and the one way to add a test.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# libllama stays where it was found, also for an installed command.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  endif()
  find_program(SHORTHAND_CCACHE ccache)
  if(SHORTHAND_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${SHORTHAND_CCACHE}")
  endif()
endif()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
if(SHORTHAND_BUILD_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
endif()

# Float results are part of the contract: no contraction, explicit fma only.
add_library(shorthand_options INTERFACE)
target_compile_options(shorthand_options INTERFACE
  -Wall -Wextra -Wno-unused-parameter -ffp-contract=off)
# GCC 12 sees overlaps and overflows in its own std::string and std::vector when it inlines them.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(shorthand_options INTERFACE
    -Wno-restrict -Wno-stringop-overflow)
endif()
target_include_directories(shorthand_options INTERFACE
  "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")

# Everything that a fuzzer runs is counted by branch for libFuzzer, and watched by the sanitizers.
option(SHORTHAND_LIBFUZZER "Drive the fuzzers with libFuzzer (needs Clang)" OFF)
if(SHORTHAND_LIBFUZZER)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "libFuzzer is a part of Clang, but the compiler is ${CMAKE_CXX_COMPILER}. "
                        "Configure with -DCMAKE_CXX_COMPILER=clang++, or without "
                        "SHORTHAND_LIBFUZZER.")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
  add_link_options(-fsanitize=address,undefined)
endif()

# What `ctest --label-regex '^unit$'` runs, so that a sanitizer builds no more than that.
if(SHORTHAND_BUILD_TESTS)
  add_custom_target(unit_tests)
endif()

# Tests find the project's files, and the data beside the clone, through the environment.
set(SHORTHAND_TEST_ENVIRONMENT "SHORTHAND_SOURCE_DIR=${PROJECT_SOURCE_DIR}")

# shorthand_test(foo_test foo_test.cc [more.cc] [LIBS library...] [LABEL label] [SHARDS n])
# The label is `unit` unless given; `model` is for tests that run a real model, which the sanitizer
# builds leave out. A program that takes minutes under a sanitizer has its cases spread over `n`
# tests, which run side by side.
function(shorthand_test name)
  if(NOT SHORTHAND_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "LABEL;SHARDS" "LIBS" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_SHARDS)
    set(ARG_SHARDS 1)
  endif()
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE shorthand_options shorthand ${ARG_LIBS} fmt::fmt-header-only
                        GTest::gtest_main GTest::gmock)
  foreach(shard RANGE 1 ${ARG_SHARDS})
    set(test ${name})
    if(ARG_SHARDS GREATER 1)
      string(APPEND test "_${shard}")
    endif()
    math(EXPR index "${shard} - 1")
    add_test(NAME ${test} COMMAND ${name})
    set_tests_properties(${test} PROPERTIES
      ENVIRONMENT
      "${SHORTHAND_TEST_ENVIRONMENT};GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}"
      LABELS ${ARG_LABEL} TIMEOUT 600)
  endforeach()
  if(ARG_LABEL STREQUAL "unit")
    add_dependencies(unit_tests ${name})
  endif()
endfunction()
