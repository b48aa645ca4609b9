"""The transaction coordinator: what becomes of transactional ids (KIP-98, KIP-447, KIP-890)."""
