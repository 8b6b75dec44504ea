# find_package(unisono): target unisono::unisono, for programs in C and in C++20.
include("${CMAKE_CURRENT_LIST_DIR}/unisono-targets.cmake")
