"""Topics and what is done for them: the catalogue, compaction, retention, scrubbing."""
