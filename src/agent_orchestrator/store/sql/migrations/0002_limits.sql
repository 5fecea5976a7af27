-- Rate limits belong to an account, not to a run: whoever hits one closes its window for all runs, and a window that is
-- closed stays closed through any crash. `strikes` counts refusals without a reset time in a row, for the backoff.
CREATE TABLE rate_windows (
    account   TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    resets_us INTEGER NOT NULL,
    seen_us   INTEGER NOT NULL,
    strikes   INTEGER NOT NULL,
    PRIMARY KEY (account, name)
) STRICT, WITHOUT ROWID;

-- What is set aside of the day's budget for launches at work, of all processes; gone with the launch's outcome.
CREATE TABLE earmarks (
    effect   TEXT    PRIMARY KEY,
    run      INTEGER NOT NULL,
    at_us    INTEGER NOT NULL,
    cost_usd REAL    NOT NULL,
    tokens   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX usage_by_time ON usage (at_us);
