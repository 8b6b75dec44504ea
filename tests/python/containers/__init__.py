"""Jobs in containers and sandboxes, and what `unisono doctor` says there."""
