# Installs into WORK_DIR, moves the tree, builds the consumer against it by WAY and runs it.

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE "${WORK_DIR}")
run("${CMAKE_COMMAND}" --install "${BUILD_DIR}" --component library --prefix "${WORK_DIR}/first")
file(RENAME "${WORK_DIR}/first" "${WORK_DIR}/installed")

if(WAY STREQUAL "cmake")
  run("${CMAKE_COMMAND}" -S "${SOURCE_DIR}" -B "${WORK_DIR}/build"
      "-DCMAKE_PREFIX_PATH=${WORK_DIR}/installed" "-DCMAKE_CXX_COMPILER=${CXX}"
      "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}")
  run("${CMAKE_COMMAND}" --build "${WORK_DIR}/build")
  run("${WORK_DIR}/build/consumer")
else()
  file(GLOB_RECURSE pc_file "${WORK_DIR}/installed/*/shorthand.pc")
  cmake_path(GET pc_file PARENT_PATH pc_dir)
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -E env "PKG_CONFIG_PATH=${pc_dir}"
            "${PKG_CONFIG}" --cflags --libs shorthand
    OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  separate_arguments(cxx_flags UNIX_COMMAND "${CXX_FLAGS}")
  run("${CXX}" -std=c++20 ${cxx_flags} "${SOURCE_DIR}/main.cc" ${flags} -o "${WORK_DIR}/consumer")
  run("${WORK_DIR}/consumer")
endif()
