"""Topics, settings, identities and epochs: small, transactional, never in the produce path."""
