-- A list costs what it shows, not what is stored. Whether a run has ended is a column, each way to list runs has an index, and
-- the specifications, which may be megabytes, are a table of their own: SQLite reads a row's later columns through its earlier
-- ones, and writes the whole row again with each new summary.
ALTER TABLE runs ADD COLUMN ended INTEGER NOT NULL DEFAULT 0;

UPDATE runs SET ended = (CAST(summary AS TEXT) ->> 'status') NOT IN ('running', 'waiting', 'paused', 'aborting');

CREATE TABLE specs (
    run  INTEGER PRIMARY KEY,
    body BLOB    NOT NULL
) STRICT;

INSERT INTO specs (run, body) SELECT key, spec FROM runs;

UPDATE runs SET spec = x'';

CREATE INDEX runs_by_time ON runs (created_us);

CREATE INDEX runs_by_end ON runs (ended, created_us);

CREATE INDEX runs_by_system ON runs (system, created_us);

CREATE INDEX runs_by_system_and_end ON runs (system, ended, created_us);

CREATE INDEX runs_by_name ON runs (name, created_us);
