"""The ledger of decided batches, and the steps by which a sink's driver decides."""
