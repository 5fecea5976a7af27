-- Whoever tells others what the journals say keeps a place in them, and what it has to deliver: notifications, telemetry.
-- `body` is the reader's own. A delivery is known by the row that it is about: a repeated one counts once.
CREATE TABLE cursors (
    reader TEXT    PRIMARY KEY,
    key    INTEGER NOT NULL,
    body   BLOB    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE deliveries (
    reader   TEXT    NOT NULL,
    key      INTEGER NOT NULL,
    kind     TEXT    NOT NULL,
    body     BLOB    NOT NULL,
    given_up INTEGER NOT NULL,
    PRIMARY KEY (reader, key, kind)
) STRICT;
