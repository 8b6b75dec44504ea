"""A benchmark process that calls from Python: `unisono bench --python` starts one for each rank (bench/worker.c is the
same for C). It needs NumPy and what it measures, and nothing else of Unisono.
"""
