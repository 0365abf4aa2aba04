# fmt, header-only, from the headers of this machine: the cross compiler looks into /usr/include for
# what does not depend on the architecture.
find_path(fmt_INCLUDE_DIR fmt/format.h)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(fmt DEFAULT_MSG fmt_INCLUDE_DIR)
if(fmt_FOUND AND NOT TARGET fmt::fmt-header-only)
  add_library(fmt::fmt-header-only INTERFACE IMPORTED)
  target_compile_definitions(fmt::fmt-header-only INTERFACE FMT_HEADER_ONLY=1)
endif()
