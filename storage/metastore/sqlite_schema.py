"""Tables of the embedded metadata store."""

from __future__ import annotations

from typing import Final

# AUTOINCREMENT, not a plain INTEGER PRIMARY KEY: SQLite would hand out the id of the newest deleted
# row again, and the journal names partitions by this id forever.
SCHEMA: Final = """
CREATE TABLE cluster (
    singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
    format_version INTEGER NOT NULL,
    cluster_id TEXT NOT NULL,
    node_id INTEGER NOT NULL,
    boot_epoch INTEGER NOT NULL,
    next_producer_id INTEGER NOT NULL
);
CREATE TABLE topics (
    topic_id BLOB PRIMARY KEY NOT NULL CHECK (length(topic_id) = 16),
    name TEXT NOT NULL,
    deleted INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX live_topic_names ON topics (name) WHERE deleted = 0;
CREATE TABLE partitions (
    partition_id INTEGER PRIMARY KEY AUTOINCREMENT,
    topic_id BLOB NOT NULL REFERENCES topics (topic_id) ON DELETE CASCADE,
    partition_index INTEGER NOT NULL,
    UNIQUE (topic_id, partition_index)
);
CREATE TABLE topic_configs (
    topic_id BLOB NOT NULL REFERENCES topics (topic_id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (topic_id, name)
);
CREATE TABLE broker_configs (
    entity TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (entity, name)
);
"""

# Not part of the first releases' schema, so made in a store of theirs when it is opened.
LATER_TABLES: Final = """
CREATE TABLE IF NOT EXISTS group_configs (
    group_id TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (group_id, name)
);
CREATE TABLE IF NOT EXISTS acls (
    resource_type INTEGER NOT NULL,
    name TEXT NOT NULL,
    pattern INTEGER NOT NULL,
    principal TEXT NOT NULL,
    host TEXT NOT NULL,
    operation INTEGER NOT NULL,
    permission INTEGER NOT NULL,
    PRIMARY KEY (resource_type, name, pattern, principal, host, operation, permission)
);
CREATE TABLE IF NOT EXISTS scram_credentials (
    user_name TEXT NOT NULL,
    mechanism TEXT NOT NULL,
    salt BLOB NOT NULL,
    stored_key BLOB NOT NULL,
    server_key BLOB NOT NULL,
    iterations INTEGER NOT NULL,
    PRIMARY KEY (user_name, mechanism)
);
CREATE TABLE IF NOT EXISTS quotas (
    entity TEXT NOT NULL,
    name TEXT NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (entity, name)
);
CREATE TABLE IF NOT EXISTS secrets (
    name TEXT PRIMARY KEY NOT NULL,
    value BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS commits (
    singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
    number INTEGER NOT NULL
);
INSERT INTO commits VALUES (1, 0) ON CONFLICT DO NOTHING
"""
