"""The group coordinator's decisions: classic groups, consumer groups (KIP-848), their offsets."""
