-- Topics, settings, rules of access: what every broker of the cluster knows alike.

CREATE TABLE barnabas.cluster (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    cluster_id text NOT NULL,
    version bigint NOT NULL DEFAULT 0,
    boot_epoch integer NOT NULL DEFAULT 0,
    next_producer_id bigint NOT NULL DEFAULT 0,
    next_partition_id bigint NOT NULL DEFAULT 1
);

-- Each store that was opened, and what came of its newest change.
CREATE TABLE barnabas.metastores (
    token uuid PRIMARY KEY,
    next_change bigint NOT NULL DEFAULT 0,
    version bigint NOT NULL DEFAULT 0,
    result bigint[] NOT NULL DEFAULT '{}'
);

CREATE TABLE barnabas.topics (
    topic_id bytea PRIMARY KEY CHECK (octet_length(topic_id) = 16),
    name text NOT NULL,
    deleted boolean NOT NULL DEFAULT false
);
CREATE UNIQUE INDEX live_topic_names ON barnabas.topics (name) WHERE NOT deleted;

CREATE TABLE barnabas.topic_partitions (
    partition_id bigint PRIMARY KEY,
    topic_id bytea NOT NULL REFERENCES barnabas.topics ON DELETE CASCADE,
    partition_index integer NOT NULL,
    UNIQUE (topic_id, partition_index)
);

CREATE TABLE barnabas.topic_configs (
    topic_id bytea NOT NULL REFERENCES barnabas.topics ON DELETE CASCADE,
    name text NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (topic_id, name)
);

CREATE TABLE barnabas.broker_configs (
    entity text NOT NULL,
    name text NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (entity, name)
);

CREATE TABLE barnabas.group_configs (
    group_id text NOT NULL,
    name text NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (group_id, name)
);

CREATE TABLE barnabas.acls (
    resource_type integer NOT NULL,
    name text NOT NULL,
    pattern integer NOT NULL,
    principal text NOT NULL,
    host text NOT NULL,
    operation integer NOT NULL,
    permission integer NOT NULL,
    PRIMARY KEY (resource_type, name, pattern, principal, host, operation, permission)
);

CREATE TABLE barnabas.scram_credentials (
    user_name text NOT NULL,
    mechanism text NOT NULL,
    salt bytea NOT NULL,
    stored_key bytea NOT NULL,
    server_key bytea NOT NULL,
    iterations integer NOT NULL,
    PRIMARY KEY (user_name, mechanism)
);

CREATE TABLE barnabas.quotas (
    entity text NOT NULL,
    name text NOT NULL,
    value double precision NOT NULL,
    PRIMARY KEY (entity, name)
);

CREATE TABLE barnabas.secrets (
    name text PRIMARY KEY,
    value bytea NOT NULL
);
