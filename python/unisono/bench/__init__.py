"""What `unisono bench` does: measures Unisono and its peers side by side. docs/bench.md says how and why."""
