"""Rules of a cluster around request handlers."""
