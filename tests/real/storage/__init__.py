"""Storage over descriptors of the kernel."""
