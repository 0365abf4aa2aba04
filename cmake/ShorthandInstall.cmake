# Installs libshorthand with its headers, a CMake package (find_package(shorthand), target
# shorthand::shorthand) and a pkg-config file. Both find their files relative to themselves, so an
# installed tree may be moved.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/shorthand")
set(pkgconfig_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

install(TARGETS shorthand EXPORT shorthand_targets COMPONENT library)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/shorthand"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT library FILES_MATCHING PATTERN "*.h")
install(EXPORT shorthand_targets NAMESPACE shorthand:: FILE shorthandTargets.cmake
        DESTINATION "${package_dir}" COMPONENT library)

configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/shorthandConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/shorthandConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/shorthandConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/shorthandConfig.cmake"
              "${PROJECT_BINARY_DIR}/shorthandConfigVersion.cmake"
        DESTINATION "${package_dir}" COMPONENT library)

file(RELATIVE_PATH pkgconfig_to_prefix "/${pkgconfig_dir}" "/")
string(REGEX REPLACE "/$" "" pkgconfig_to_prefix "${pkgconfig_to_prefix}")
configure_file("${CMAKE_CURRENT_LIST_DIR}/shorthand.pc.in"
               "${PROJECT_BINARY_DIR}/shorthand.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/shorthand.pc"
        DESTINATION "${pkgconfig_dir}" COMPONENT library)
