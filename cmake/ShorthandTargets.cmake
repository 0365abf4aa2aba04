# How every target of the project is built, and the one way to add a test.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

option(SHORTHAND_BUILD_TESTS "Build the unit tests" ${PROJECT_IS_TOP_LEVEL})
option(SHORTHAND_BUILD_MODEL "Build the model runner (needs llama.cpp)" ${PROJECT_IS_TOP_LEVEL})

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
if(SHORTHAND_BUILD_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

# Float results are part of the contract: no contraction, explicit fma only.
add_library(shorthand_options INTERFACE)
target_compile_options(shorthand_options INTERFACE
  -Wall -Wextra -Wno-unused-parameter -ffp-contract=off)
target_include_directories(shorthand_options INTERFACE
  "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")

# shorthand_test(foo_test foo_test.cc [more.cc] [LIBS library...])
function(shorthand_test name)
  if(NOT SHORTHAND_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "LIBS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE shorthand_options shorthand ${ARG_LIBS} fmt::fmt-header-only
                        GTest::gtest_main GTest::gmock)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES
    ENVIRONMENT "SHORTHAND_SOURCE_DIR=${PROJECT_SOURCE_DIR}" TIMEOUT 600)
endfunction()
