"""Start of a cluster member, and the end of its membership."""
