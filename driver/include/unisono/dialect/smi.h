/* For kernels that include SMI's header by its name. */
#include "unisono/dialect/kernel.hpp"
