"""Ray's public names and how they are called, and how ours compare: see `test_surface`."""
