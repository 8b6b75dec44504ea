"""Sources of kernels: what channels they open, what hardware has no place for, and what is generated from them."""
