"""Parts of a pipeline as a user writes them, and the checks before its query starts."""
