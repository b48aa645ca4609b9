"""The coordinators of groups and transactions: what runs their decisions, markers, verification."""
