-- Not in the schema of the first releases, so created in a store of theirs when it is opened.
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
