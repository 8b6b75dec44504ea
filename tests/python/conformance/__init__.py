"""The conformance matrix: every engine against an independent NumPy reference, and against each other."""
