"""Kernels: what their sources say, what hardware has no place for, what is generated from them, and their libraries."""
