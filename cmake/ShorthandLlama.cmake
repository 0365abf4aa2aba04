# Finds llama.cpp and ggml: at SHORTHAND_LLAMA_PREFIX, else in CMAKE_PREFIX_PATH, else in the .venv
# that scripts/setup makes, else in the system. Gives the targets llama, ggml::ggml, ggml::ggml-base
# and ggml::ggml-cpu.

set(SHORTHAND_LLAMA_PREFIX "$ENV{SHORTHAND_LLAMA_PREFIX}" CACHE PATH
    "Where llama.cpp is installed; empty: searched")
file(GLOB venv_prefix "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages")
list(PREPEND CMAKE_PREFIX_PATH ${SHORTHAND_LLAMA_PREFIX})
list(APPEND CMAKE_PREFIX_PATH ${venv_prefix})

find_package(llama CONFIG QUIET)
if(NOT llama_FOUND)
  message(FATAL_ERROR
    "llama.cpp was not found. Run scripts/setup, or set SHORTHAND_LLAMA_PREFIX to where it is "
    "installed, or build the core alone with -DSHORTHAND_BUILD_MODEL=OFF.")
endif()
message(STATUS "llama.cpp: ${llama_DIR}")
