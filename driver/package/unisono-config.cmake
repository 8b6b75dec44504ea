# find_package(unisono): target unisono::unisono, for programs in C and in C++20, and unisono_kernels() for programs of SMI.
include("${CMAKE_CURRENT_LIST_DIR}/unisono-targets.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/unisono-kernels.cmake")
