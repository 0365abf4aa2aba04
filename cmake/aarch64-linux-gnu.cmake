# Toolchain of the preset `aarch64`: Debian's cross compiler for 64-bit Arm (scripts/setup --cross).
# Programs run under qemu, as one of the first server CPUs with the dot products.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -cpu neoverse-n1 -L /usr/aarch64-linux-gnu)

# Libraries of this machine are of no use; what is header-only or built from source is found here.
list(PREPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}/aarch64")
