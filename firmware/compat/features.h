/* Stands in for the C library's <features.h>, which the host's libstdc++ headers ask for a version. There is
   no C library under the firmware, so the answer is always "older". */
#pragma once

#define __GLIBC_PREREQ(major, minor) 0
