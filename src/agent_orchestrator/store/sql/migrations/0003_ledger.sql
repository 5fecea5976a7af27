-- The ledger outlives runs: what was spent stays spent when its run is pruned. Its lines are found by a run's key, which is
-- never given to another run; a run whose id is used again begins with lines of its own.
CREATE TABLE pruned (
    key    INTEGER PRIMARY KEY,
    id     TEXT    NOT NULL
) STRICT;

CREATE TABLE ledger (
    run     INTEGER NOT NULL,
    effect  TEXT    NOT NULL,
    "offset" INTEGER NOT NULL,
    unit    TEXT    NOT NULL,
    agent   TEXT    NOT NULL,
    at_us   INTEGER NOT NULL,
    body    BLOB    NOT NULL,
    PRIMARY KEY (run, effect, "offset")
) STRICT, WITHOUT ROWID;

INSERT INTO ledger (run, effect, "offset", unit, agent, at_us, body)
SELECT run, effect, "offset", unit, agent, at_us, body FROM usage;

DROP TABLE usage;

ALTER TABLE ledger RENAME TO usage;

CREATE INDEX usage_by_time ON usage (at_us);
