# GoogleTest, built from the sources that Debian installs with its headers.
find_path(GTest_SOURCE_DIR googlemock/CMakeLists.txt PATHS /usr/src/googletest NO_DEFAULT_PATH)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(GTest DEFAULT_MSG GTest_SOURCE_DIR)
if(GTest_FOUND AND NOT TARGET gtest)
  set(INSTALL_GTEST OFF)
  add_subdirectory("${GTest_SOURCE_DIR}" "${CMAKE_BINARY_DIR}/googletest" EXCLUDE_FROM_ALL)
endif()
