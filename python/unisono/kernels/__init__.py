"""Making libraries of kernels (`unisono kernel build`)."""
