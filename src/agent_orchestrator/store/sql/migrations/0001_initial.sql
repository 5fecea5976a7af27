-- The first schema. Runs have a small integer key so that a journal row carries eight bytes, not an id, and so that
-- renaming a run touches one row. `run` in the other tables is that key; no foreign key guards it, because checking one
-- costs a third of an insert and runs are deleted in one place.
CREATE TABLE runs (
    key        INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    system     TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    context    BLOB    NOT NULL,
    spec       BLOB    NOT NULL,
    summary    BLOB    NOT NULL,
    created_us INTEGER NOT NULL,
    updated_us INTEGER NOT NULL
) STRICT;

-- A rowid table with a unique index: a table clustered by (run, seq) dirties a page per run and commit, which was
-- several times slower with many runs. The index is also the fence: two writers cannot take the same sequence number.
CREATE TABLE events (
    key   INTEGER PRIMARY KEY,
    run   INTEGER NOT NULL,
    seq   INTEGER NOT NULL,
    at_us INTEGER NOT NULL,
    body  BLOB    NOT NULL
) STRICT;

CREATE UNIQUE INDEX events_by_run ON events (run, seq);

-- Directives stay after they were taken: their id is what makes a repeated one count once.
CREATE TABLE inbox (
    id        TEXT    PRIMARY KEY,
    run       INTEGER NOT NULL,
    posted_us INTEGER NOT NULL,
    body      BLOB    NOT NULL,
    taken_us  INTEGER
) STRICT;

CREATE INDEX inbox_waiting ON inbox (run) WHERE taken_us IS NULL;

CREATE TABLE usage (
    effect  TEXT    NOT NULL,
    "offset" INTEGER NOT NULL,
    run     INTEGER NOT NULL,
    unit    TEXT    NOT NULL,
    agent   TEXT    NOT NULL,
    at_us   INTEGER NOT NULL,
    body    BLOB    NOT NULL,
    PRIMARY KEY (effect, "offset")
) STRICT, WITHOUT ROWID;

CREATE INDEX usage_by_run ON usage (run);

CREATE TABLE printed (
    key  INTEGER PRIMARY KEY,
    run  INTEGER NOT NULL,
    path TEXT    NOT NULL,
    body BLOB    NOT NULL
) STRICT;

CREATE INDEX printed_by_run ON printed (run, path);
