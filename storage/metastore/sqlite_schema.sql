-- AUTOINCREMENT, not a plain INTEGER PRIMARY KEY: SQLite would give the ID of the newest deleted row
-- again, and the journal names partitions by this ID.
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
