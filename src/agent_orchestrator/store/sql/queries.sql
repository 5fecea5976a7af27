-- Every statement the SQLite store executes, by name.

-- name: run_key
SELECT key FROM runs WHERE id = ?1;

-- The ledger of a pruned run keeps its key: no other run may get it.
-- name: insert_run
INSERT INTO runs (key, id, system, name, context, spec, summary, created_us, updated_us, ended)
VALUES (
    1 + max((SELECT coalesce(max(key), 0) FROM runs), (SELECT coalesce(max(key), 0) FROM pruned)),
    ?1, ?2, ?3, ?4, x'', ?5, ?6, ?6, ?7
);

-- name: insert_spec
INSERT INTO specs (run, body) VALUES (last_insert_rowid(), ?1);

-- name: insert_event
INSERT INTO events (run, seq, at_us, body) VALUES (?1, ?2, ?3, ?4);

-- Ordered and limited: max(seq) inside an expression walks all rows of the run.
-- name: last_seq
SELECT seq FROM events WHERE run = ?1 ORDER BY seq DESC LIMIT 1;

-- name: update_summary
UPDATE runs SET summary = ?2, updated_us = ?3 WHERE key = ?1;

-- By itself, and only where it is news: an index is written for each column that a statement sets, changed or not.
-- name: update_ended
UPDATE runs SET ended = ?2 WHERE key = ?1 AND ended <> ?2;

-- name: take_directive
UPDATE inbox SET taken_us = ?2 WHERE id = ?1;

-- name: insert_usage
INSERT OR IGNORE INTO usage (effect, "offset", run, unit, agent, at_us, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);

-- name: upsert_window
INSERT INTO rate_windows (account, name, resets_us, seen_us, strikes) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (account, name) DO UPDATE SET resets_us = ?3, seen_us = ?4, strikes = ?5 WHERE seen_us <= ?4;

-- name: select_windows
SELECT account, name, resets_us, seen_us, strikes FROM rate_windows ORDER BY account, name;

-- Reservations stand in a table with their older name.
-- name: upsert_reservation
INSERT INTO earmarks (effect, run, at_us, cost_usd, tokens) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (effect) DO UPDATE SET at_us = ?3, cost_usd = ?4, tokens = ?5;

-- name: delete_reservation
DELETE FROM earmarks WHERE effect = ?1;

-- name: delete_reservations
DELETE FROM earmarks WHERE run = ?1;

-- name: select_reserved
SELECT coalesce(sum(cost_usd), 0.0), coalesce(sum(tokens), 0) FROM earmarks
WHERE at_us >= ?1 AND run <> ?2 AND effect <> ?3;

-- name: select_run_reserved
SELECT coalesce(sum(cost_usd), 0.0), coalesce(sum(tokens), 0) FROM earmarks WHERE run = ?1;

-- By its index alone: hundreds of times faster than the sums.
-- name: select_ledger_mark
SELECT count(*), max(at_us) FROM usage WHERE at_us >= ?1;

-- The ledger's lines are JSON; a blob would be taken for SQLite's own binary form of it.
-- name: select_spent_since
SELECT coalesce(sum(line ->> 'cost_usd'), 0.0),
    coalesce(sum(
        coalesce(line ->> 'input_tokens', 0) + coalesce(line ->> 'output_tokens', 0)
        + coalesce(line ->> 'cache_read_tokens', 0) + coalesce(line ->> 'cache_write_tokens', 0)
    ), 0),
    coalesce(sum(line ->> 'wall_s'), 0.0)
FROM (SELECT CAST(body AS TEXT) AS line FROM usage WHERE at_us >= ?1);

-- name: select_spending
SELECT agent, coalesce(line ->> 'model', '') AS model, count(*), sum(line ->> 'cost_usd'), count(line ->> 'cost_usd'),
    sum(
        coalesce(line ->> 'input_tokens', 0) + coalesce(line ->> 'output_tokens', 0)
        + coalesce(line ->> 'cache_read_tokens', 0) + coalesce(line ->> 'cache_write_tokens', 0)
    )
FROM (SELECT agent, CAST(body AS TEXT) AS line FROM usage WHERE at_us >= ?1)
GROUP BY agent, model ORDER BY agent, model;

-- A key that is NULL means all runs.
-- name: select_costs
SELECT runs.id, sum(CAST(usage.body AS TEXT) ->> 'cost_usd') AS cost FROM usage JOIN runs ON runs.key = usage.run
WHERE ?1 IS NULL OR usage.run = ?1 GROUP BY runs.key HAVING cost IS NOT NULL;

-- name: insert_printed
INSERT INTO printed (run, path, body) VALUES (?1, ?2, ?3);

-- name: forget_printed
DELETE FROM printed WHERE run = ?1 AND path = ?2 AND key NOT IN (
    SELECT key FROM printed WHERE run = ?1 AND path = ?2 ORDER BY key DESC LIMIT ?3
);

-- name: select_run
SELECT id, system, name, context, summary, updated_us FROM runs WHERE id = ?1;

-- The filters and the order are put behind it (lists.py).
-- name: select_runs
SELECT id, system, name, context, summary, updated_us FROM runs

-- name: count_runs
SELECT count(*), coalesce(sum(NOT ended), 0) FROM runs INDEXED BY runs_by_end;

-- name: select_page
SELECT key, id, system, name, context, summary, updated_us FROM runs WHERE key > ?1 AND system = ?2 ORDER BY key LIMIT ?3;

-- name: select_spec
SELECT body FROM specs WHERE run = ?1;

-- name: select_rows
SELECT seq, at_us, body FROM events WHERE run = ?1 AND seq > ?2 ORDER BY seq;

-- name: select_newest
SELECT epoch, (SELECT coalesce(max(key), 0) FROM events) FROM journal;

-- A row of run 0 names a run that is gone or has another id.
-- name: select_since
SELECT events.key, coalesce(runs.id, CAST(events.body AS TEXT)), events.seq, events.at_us, iif(events.run = 0, NULL, events.body)
FROM events LEFT JOIN runs ON runs.key = events.run WHERE events.key > ?1 ORDER BY events.key LIMIT ?2;

-- name: insert_change
INSERT INTO events (key, run, seq, at_us, body)
SELECT 1 + coalesce(max(key), 0), 0, 1 + coalesce(max(key), 0), coalesce(max(at_us), 0), CAST(?1 AS BLOB)
FROM (SELECT key, at_us FROM events ORDER BY key DESC LIMIT 1);

-- name: select_posted
SELECT taken_us IS NOT NULL FROM inbox WHERE id = ?1 AND run = ?2;

-- name: insert_directive
INSERT OR IGNORE INTO inbox (id, run, posted_us, body) VALUES (?1, ?2, ?3, ?4);

-- name: select_inbox
SELECT id, body FROM inbox WHERE run = ?1 AND taken_us IS NULL ORDER BY posted_us, rowid;

-- name: select_printed
SELECT path, body FROM printed WHERE run = ?1 ORDER BY key;

-- name: select_usage
SELECT runs.id, unit, effect, agent, at_us, body, 0 FROM usage JOIN runs ON runs.key = usage.run
WHERE usage.run = ?1 ORDER BY at_us, effect, "offset";

-- name: select_all_usage
SELECT coalesce(runs.id, pruned.id), unit, effect, agent, at_us, body, runs.id IS NULL
FROM usage LEFT JOIN runs ON runs.key = usage.run LEFT JOIN pruned ON pruned.key = usage.run
ORDER BY at_us, effect, "offset";

-- name: rename_run
UPDATE runs SET id = ?2 WHERE id = ?1;

-- name: delete_events
DELETE FROM events WHERE run = ?1;

-- name: delete_inbox
DELETE FROM inbox WHERE run = ?1;

-- name: insert_pruned
INSERT INTO pruned (key, id) SELECT key, id FROM runs WHERE key = ?1;

-- name: delete_printed
DELETE FROM printed WHERE run = ?1;

-- name: delete_spec
DELETE FROM specs WHERE run = ?1;

-- name: delete_run
DELETE FROM runs WHERE key = ?1;

-- name: select_cursor
SELECT key, body FROM cursors WHERE reader = ?1;

-- name: upsert_cursor
INSERT INTO cursors (reader, key, body) VALUES (?1, ?2, ?3) ON CONFLICT (reader) DO UPDATE SET key = ?2, body = ?3;

-- name: select_deliveries
SELECT reader, key, kind, body, given_up FROM deliveries
WHERE (?1 IS NULL OR reader = ?1) AND (?2 IS NULL OR given_up = ?2) ORDER BY reader, key, kind;

-- name: upsert_delivery
INSERT INTO deliveries (reader, key, kind, body, given_up) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (reader, key, kind) DO UPDATE SET body = ?4, given_up = ?5;

-- name: delete_delivery
DELETE FROM deliveries WHERE reader = ?1 AND key = ?2 AND kind = ?3;
