"""Record batches as bytes: their records, compression, and those that break a rule."""
