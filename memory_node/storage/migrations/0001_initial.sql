-- Version 1: the whole graph. Times are ns, positions m, vectors float16 little-endian and of unit length.

-- Small facts about the database itself: uuid, revision, pruned_revision.
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
INSERT INTO meta VALUES ('uuid', lower(hex(randomblob(16))));

-- A node start, a clock jump or a change of map opens a session. Stamps of different clocks are never compared.
CREATE TABLE session (
    id INTEGER PRIMARY KEY,
    started_wall INTEGER NOT NULL,     -- wall clock, ns
    clock TEXT NOT NULL,               -- 'ros', 'sim', 'system' ...
    start_stamp INTEGER NOT NULL,      -- first time of the node's clock, ns
    last_stamp INTEGER NOT NULL,       -- the newest stamp stored in it, ns
    last_wall INTEGER NOT NULL,
    frame TEXT NOT NULL,
    map_id TEXT NOT NULL,
    reason TEXT NOT NULL               -- 'start', 'clock went back', 'clock jumped ahead', 'map changed'
);

CREATE TABLE layer (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    internal INTEGER NOT NULL DEFAULT 0   -- 1: interoception, never returned by perception tools
);

CREATE TABLE map (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);

-- Content-addressed: a text said 100 000 times is one row, one vector, one FTS entry.
CREATE TABLE text (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    digest BLOB NOT NULL UNIQUE,       -- blake2b-128 of body
    body TEXT NOT NULL,
    wanted INTEGER NOT NULL DEFAULT 1  -- 1: a perception or derived node uses it, so it is embedded and in text_fts
);

-- What FTS reads its text from; a view, so that FTS's own integrity check sees wanted texts alone.
CREATE VIEW wanted_text AS SELECT id, body FROM text WHERE wanted = 1;
CREATE VIRTUAL TABLE text_fts USING fts5(
    body, content='wanted_text', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE text_terms USING fts5vocab('text_fts', 'row');

CREATE TABLE model (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    dim INTEGER NOT NULL,
    state INTEGER NOT NULL DEFAULT 0,  -- 0: being filled, 1: active (the one that ranks), 2: stale, its vectors may go
    UNIQUE (name, dim)
);

-- Wanted texts that a model, filled or active, has no vector of yet.
CREATE TABLE unembedded (
    model_id INTEGER NOT NULL,
    text_id INTEGER NOT NULL,
    PRIMARY KEY (model_id, text_id)
) WITHOUT ROWID;

-- A vector belongs to a text (part 0), to a later part of a long text (part > 0), or to a node (an episode's centroid).
-- Its id is the HNSW label. A vector never changes: a new one of the same text or node has a new id.
CREATE TABLE vector (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    model_id INTEGER NOT NULL REFERENCES model (id),
    text_id INTEGER REFERENCES text (id),
    part INTEGER NOT NULL DEFAULT 0,
    node_id INTEGER,
    revision INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE UNIQUE INDEX vector_text ON vector (text_id, model_id, part) WHERE text_id IS NOT NULL;
CREATE UNIQUE INDEX vector_node ON vector (node_id, model_id) WHERE node_id IS NOT NULL;
CREATE INDEX vector_revision ON vector (revision);

-- One id space, never reused. revision is the number of the transaction that last wrote the row: projections read what is newer
-- than their watermark.
CREATE TABLE node (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind INTEGER NOT NULL,
    layer_id INTEGER NOT NULL DEFAULT 0,   -- 0: none (episodes, gists, entities)
    text_id INTEGER REFERENCES text (id),  -- NULL once archived
    stamp INTEGER NOT NULL,
    last_stamp INTEGER NOT NULL,
    repeats INTEGER NOT NULL DEFAULT 1,
    stamp_source TEXT NOT NULL DEFAULT '',
    x REAL, y REAL, z REAL,                -- all three or none
    position_source INTEGER NOT NULL DEFAULT 0,
    frame TEXT NOT NULL DEFAULT '',
    map_id INTEGER NOT NULL DEFAULT 0,     -- map.id
    confidence REAL NOT NULL DEFAULT 1.0,
    importance REAL NOT NULL DEFAULT 0.5,  -- what the writer set; what use earned is computed from `usage`
    tier INTEGER NOT NULL DEFAULT 1,
    session_id INTEGER NOT NULL,
    episode_id INTEGER NOT NULL DEFAULT 0,
    value REAL,                            -- of a body reading
    unit TEXT,
    metadata TEXT,                         -- JSON object or NULL
    revision INTEGER NOT NULL,
    CONSTRAINT position_whole_and_finite CHECK (
        (x IS NULL) = (y IS NULL) AND (x IS NULL) = (z IS NULL)
        AND (x IS NULL OR (abs(x) < 1e9 AND abs(y) < 1e9 AND abs(z) < 1e9))
    )
);
CREATE INDEX node_text ON node (text_id, stamp) WHERE text_id IS NOT NULL;
CREATE INDEX node_kind_stamp ON node (kind, stamp);
CREATE INDEX node_layer_stamp ON node (layer_id, stamp);
CREATE INDEX node_episode ON node (episode_id, stamp);
CREATE INDEX node_revision ON node (revision);
-- Observations that are still raw: what housekeeping looks at.
CREATE INDEX node_raw ON node (session_id, episode_id, stamp) WHERE kind = 1 AND tier = 1;
-- Counts of what is archived; the rest is counted in memory.
CREATE INDEX node_archived ON node (kind) WHERE tier = 3;

-- What projections must forget: a node or vector that is gone.
CREATE TABLE removed (
    revision INTEGER NOT NULL,
    what TEXT NOT NULL,                    -- 'node' or 'vector'
    id INTEGER NOT NULL,
    PRIMARY KEY (revision, what, id)
) WITHOUT ROWID;

CREATE TABLE edge (
    source INTEGER NOT NULL,
    target INTEGER NOT NULL,
    type INTEGER NOT NULL,
    count INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (source, type, target)
) WITHOUT ROWID;
CREATE INDEX edge_target ON edge (target, type, source);

-- stamp of the node row is the start, last_stamp the end (or the newest row while it runs), text the name.
CREATE TABLE episode (
    id INTEGER PRIMARY KEY REFERENCES node (id),
    status TEXT NOT NULL,                  -- active, completed, abandoned
    explicit INTEGER NOT NULL,             -- 0: linked by silence
    parent_id INTEGER NOT NULL DEFAULT 0,
    ended INTEGER,                         -- ns, NULL while active
    observation_count INTEGER NOT NULL DEFAULT 0,
    summary TEXT NOT NULL DEFAULT '',
    radius REAL NOT NULL DEFAULT 0
);
CREATE INDEX episode_parent ON episode (parent_id);
CREATE INDEX episode_status ON episode (status);

-- stamp..last_stamp of the node row is the span of its members, position their centre.
CREATE TABLE gist (
    id INTEGER PRIMARY KEY REFERENCES node (id),
    level INTEGER NOT NULL DEFAULT 0,
    layers TEXT NOT NULL,                  -- JSON list of names
    observation_count INTEGER NOT NULL,
    radius REAL NOT NULL,
    episode_id INTEGER NOT NULL DEFAULT 0,
    author TEXT NOT NULL,                  -- 'extractive' or the language model's name
    rewrite INTEGER NOT NULL DEFAULT 0     -- 1: a language model's text is still wanted
);
CREATE INDEX gist_rewrite ON gist (id) WHERE rewrite = 1;

-- stamp..last_stamp of the node row is first_seen..last_seen, repeats the sightings, position the running estimate, text the name.
CREATE TABLE entity (
    id INTEGER PRIMARY KEY REFERENCES node (id),
    entity_type TEXT NOT NULL DEFAULT '',
    label TEXT NOT NULL,                   -- normalised class name
    weight REAL NOT NULL DEFAULT 0,        -- sum of 1/variance of the sightings at the present place
    stddev REAL NOT NULL DEFAULT 0,        -- of the position, m
    tentative INTEGER NOT NULL DEFAULT 1,
    moved INTEGER NOT NULL DEFAULT 0,
    missing INTEGER NOT NULL DEFAULT 0,
    missed_looks INTEGER NOT NULL DEFAULT 0,
    track_id TEXT NOT NULL DEFAULT '',
    track_stamp INTEGER NOT NULL DEFAULT 0,
    merged_into INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX entity_label ON entity (label) WHERE merged_into = 0;

-- Earlier places of an entity; the present one is the node's own position.
CREATE TABLE entity_place (
    id INTEGER PRIMARY KEY,
    entity_id INTEGER NOT NULL,
    x REAL NOT NULL, y REAL NOT NULL, z REAL NOT NULL,
    position_source INTEGER NOT NULL,
    stddev REAL NOT NULL,
    sightings INTEGER NOT NULL,
    first_seen INTEGER NOT NULL,
    last_seen INTEGER NOT NULL
);
CREATE INDEX entity_place_entity ON entity_place (entity_id, last_seen);

-- Use of a memory, written in batches off the query path. A block is a stretch of recalls that counts once.
CREATE TABLE usage (
    node_id INTEGER PRIMARY KEY,
    blocks INTEGER NOT NULL DEFAULT 0,
    last_recalled INTEGER NOT NULL
);

-- Durable state of each housekeeping job.
CREATE TABLE job (
    name TEXT PRIMARY KEY,
    cursor TEXT NOT NULL DEFAULT '{}',     -- JSON
    last_run INTEGER,
    runs INTEGER NOT NULL DEFAULT 0,
    scanned INTEGER NOT NULL DEFAULT 0,
    wrote INTEGER NOT NULL DEFAULT 0,
    used_ms REAL NOT NULL DEFAULT 0,
    error TEXT NOT NULL DEFAULT '',
    retry_at INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
