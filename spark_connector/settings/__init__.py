"""Options of sources, sinks and checkpoints, checked."""
