"""Sources of settings: files, environment, providers."""
