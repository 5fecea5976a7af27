-- Every statement the PostgreSQL store executes, by name.

-- name: lock_schema
SELECT pg_advisory_xact_lock(1869767471, 1);

-- name: find_schema
SELECT to_regclass('orc.store') IS NOT NULL;

-- name: select_version
SELECT version FROM orc.store;

-- name: count_drivers
SELECT count(*) FROM orc.workers WHERE lease_until > clock_timestamp();

-- name: forget_workers
DELETE FROM orc.workers;

-- name: set_version
UPDATE orc.store SET version = %s;

-- What is answered must be on the disk, and each statement must see what was committed before it. One that waits for ever, for a
-- lock that an administrator holds, is ended by the server itself: whoever asked has given up by then, and asks again.
-- name: set_up
SELECT set_config('default_transaction_isolation', 'read committed', false),
    CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', false) END,
    CASE WHEN current_setting('statement_timeout') = '0' THEN set_config('statement_timeout', '30s', false) END;

-- name: select_store
SELECT ident, version, extract(epoch FROM current_setting('statement_timeout')::interval)::double precision FROM orc.store;

-- name: find_repository
SELECT key FROM orc.repositories WHERE name = $1;

-- name: make_repository
SELECT orc.repository($1);

-- name: listen
LISTEN orc;

-- name: notify
SELECT pg_notify('orc', $1);

-- name: append
SELECT orc.append(
    $1::uuid, $2::integer, $3::bigint, $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bytea[], $9::bytea[],
    $10::boolean[], $11::json[], $12::bigint[], $13::text[], $14::text[]
);

-- name: create_run
SELECT orc.create_run(
    $1::uuid, $2::integer, $3::bigint, $4::uuid, $5::text, $6::text, $7::text, $8::bytea, $9::bytea, $10::bytea, $11::bigint,
    $12::boolean, $13::bigint[], $14::bigint[], $15::bytea[], $16::bigint, $17::bigint, $18::bytea, $19::json
);

-- name: post
SELECT orc.post($1::uuid, $2::integer, $3::text, $4::text, $5::bigint, $6::bytea);

-- name: reserve
SELECT orc.reserve(
    $1::uuid, $2::integer, $3::bigint, $4::text, $5::bigint, $6::text, $7::double precision, $8::bigint,
    $9::double precision, $10::bigint, $11::bigint, $12::bigint
);

-- name: rename_run
SELECT orc.rename_run($1::integer, $2::bigint, $3::text);

-- name: delete_run
SELECT orc.delete_run($1::integer, $2::bigint);

-- name: run_key
SELECT key FROM orc.runs WHERE repo = $1 AND id = $2;

-- name: select_run
SELECT id, system, name, context, summary, updated_us FROM orc.runs WHERE repo = $1 AND id = $2;

-- A filter that is NULL means all; it is planned anew with each call, for the index of what is asked for.
-- name: select_runs
SELECT id, system, name, context, summary, updated_us FROM orc.runs
WHERE repo = $1::integer AND ($2::text IS NULL OR system = $2::text) AND ($3::text IS NULL OR name = $3::text)
    AND ($4::boolean IS NULL OR ended = $4::boolean) AND ($5::text IS NULL OR (id >= $5::text AND id < $6::text))
ORDER BY created_us DESC, key DESC LIMIT $7::bigint;

-- name: count_runs
SELECT count(*), count(*) FILTER (WHERE NOT ended) FROM orc.runs WHERE repo = $1;

-- name: select_page
SELECT key, id, system, name, context, summary, updated_us FROM orc.runs
WHERE repo = $1 AND key > $2 AND system = $3 ORDER BY key LIMIT $4;

-- name: select_spec
SELECT body FROM orc.specs WHERE run = (SELECT key FROM orc.runs WHERE repo = $1 AND id = $2);

-- name: select_rows
SELECT seq, at_us, body FROM orc.events
WHERE run = (SELECT key FROM orc.runs WHERE repo = $1 AND id = $2) AND seq > $3 ORDER BY seq;

-- name: horizon
SELECT orc.horizon();

-- name: select_newest
SELECT ident, key FROM orc.newest($1::integer);

-- name: select_since
SELECT key, run, seq, at_us, body FROM orc.since($1::integer, $2::bigint, $3::bigint);

-- name: select_posted
SELECT taken_us IS NOT NULL FROM orc.inbox WHERE repo = $1 AND id = $3
    AND run = (SELECT key FROM orc.runs WHERE repo = $1 AND id = $2);

-- name: select_inbox
SELECT id, body FROM orc.inbox
WHERE run = (SELECT key FROM orc.runs WHERE repo = $1 AND id = $2) AND taken_us IS NULL ORDER BY posted_us, key;

-- name: select_printed
SELECT path, body FROM orc.printed WHERE run = (SELECT key FROM orc.runs WHERE repo = $1 AND id = $2) ORDER BY key;

-- name: select_usage
SELECT coalesce(runs.id, pruned.id), u.unit, u.effect, u.agent, u.at_us, u.body, runs.id IS NULL
FROM orc.usage u LEFT JOIN orc.runs ON runs.key = u.run LEFT JOIN orc.pruned ON pruned.key = u.run
WHERE u.repo = $1::integer AND ($2::text IS NULL OR runs.id = $2::text)
ORDER BY u.at_us, u.effect COLLATE "C", u."offset";

-- name: select_spending
SELECT agent, model, count(*), sum(cost_usd), count(cost_usd), sum(tokens)::bigint FROM orc.usage
WHERE repo = $1 AND at_us >= $2 GROUP BY agent, model ORDER BY agent COLLATE "C", model COLLATE "C";

-- name: select_costs
SELECT runs.id, sum(u.cost_usd) FROM orc.usage u JOIN orc.runs ON runs.key = u.run
WHERE u.repo = $1::integer AND ($2::text IS NULL OR runs.id = $2::text) GROUP BY runs.id HAVING count(u.cost_usd) > 0;

-- name: select_windows
SELECT account, name, resets_us, seen_us, strikes FROM orc.rate_windows ORDER BY account COLLATE "C", name COLLATE "C";

-- name: select_day
SELECT spent.usd, spent.tokens::bigint, spent.wall_s, held.usd, held.tokens::bigint
FROM (
    SELECT coalesce(sum(cost_usd), 0) AS usd, coalesce(sum(tokens), 0) AS tokens, coalesce(sum(wall_s), 0) AS wall_s
    FROM orc.usage WHERE repo = $1 AND at_us >= $2
) AS spent, (
    SELECT coalesce(sum(cost_usd), 0) AS usd, coalesce(sum(tokens), 0) AS tokens
    FROM orc.reservations WHERE repo = $1 AND at_us >= $2
        AND run <> coalesce((SELECT key FROM orc.runs WHERE repo = $1 AND id = $3), 0)
) AS held;

-- name: select_run_reserved
SELECT coalesce(sum(cost_usd), 0), coalesce(sum(tokens), 0)::bigint FROM orc.reservations
WHERE run = (SELECT key FROM orc.runs WHERE repo = $1 AND id = $2);

-- Journals that are not whole, and runs that were given an id twice over: nothing may make either.
-- name: find_faults
SELECT r.id, r.seq, count(e.seq), coalesce(max(e.seq), 0) FROM orc.runs r LEFT JOIN orc.events e ON e.run = r.key
WHERE r.repo = $1 GROUP BY r.key HAVING count(e.seq) <> r.seq OR coalesce(max(e.seq), 0) <> r.seq ORDER BY r.id LIMIT 20;

-- name: select_cursor
SELECT key, body FROM orc.cursors WHERE repo = $1 AND reader = $2;

-- name: advance
SELECT orc.advance(
    $1::uuid, $2::integer, $3::text, $4::bigint, $5::bigint, $6::bytea, $7::text[], $8::bigint[], $9::text[], $10::bytea[],
    $11::boolean[]
);

-- name: select_deliveries
SELECT reader, key, kind, body, given_up FROM orc.deliveries
WHERE repo = $1::integer AND ($2::text IS NULL OR reader = $2::text) AND ($3::boolean IS NULL OR given_up = $3::boolean)
ORDER BY reader, key, kind;

-- name: upsert_delivery
INSERT INTO orc.deliveries (repo, reader, key, kind, body, given_up) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (repo, reader, key, kind) DO UPDATE SET body = $5, given_up = $6;

-- name: delete_delivery
DELETE FROM orc.deliveries WHERE repo = $1 AND reader = $2 AND key = $3 AND kind = $4;

-- name: join_workers
SELECT orc.join_workers(
    $1::uuid, $2::text, $3::text, $4::text, $5::integer, $6::text, $7::integer, $8::text, $9::text, $10::double precision
);

-- name: beat
SELECT drain, held_s FROM orc.beat($1::bigint, $2::uuid, $3::double precision);

-- name: leave_workers
SELECT orc.leave_workers($1::bigint, $2::uuid);

-- name: own
SELECT epoch, worker, host, boot, pid, over
FROM orc.own($1::uuid, $2::integer, $3::text, $4::bigint, $5::uuid, $6::bigint);

-- name: queue
SELECT orc.queue($1::integer, $2::text, $3::text, $4::integer, $5::bigint);

-- name: claim
SELECT repository, id, epoch FROM orc.claim($1::uuid, $2::bigint, $3::uuid, $4::text, $5::integer);

-- name: take_over
SELECT repository, id, epoch FROM orc.take_over($1::uuid, $2::bigint, $3::uuid, $4::text, $5::integer, $6::double precision);

-- name: release
SELECT orc.release($1::integer, $2::text, $3::bigint, $4::bigint, $5::bigint);

-- name: select_mine
SELECT id, epoch FROM orc.runs WHERE repo = $1 AND worker = $2;

-- name: select_owner
SELECT w.key, w.host, w.boot, w.pid, w.lease_until <= clock_timestamp()
FROM orc.runs r JOIN orc.workers w ON w.key = r.worker WHERE r.repo = $1 AND r.id = $2;

-- name: server_clock
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- name: claim_one
SELECT repository, id, epoch FROM orc.claim_one($1::uuid, $2::bigint, $3::uuid, $4::text);

-- name: inherit
SELECT repository, id, epoch FROM orc.inherit($1::uuid, $2::bigint, $3::uuid);

-- name: select_claimed
SELECT p.name, r.id, r.epoch FROM orc.runs r JOIN orc.repositories p ON p.key = r.repo WHERE r.worker = $1;

-- name: drain
SELECT orc.drain($1::text, $2::boolean);

-- name: select_workers
SELECT w.name, w.host, w.pid, w.pool, w.capacity, w.root, w.version, w.drain,
    extract(epoch FROM w.lease_until - clock_timestamp())::double precision,
    extract(epoch FROM clock_timestamp() - w.joined)::double precision,
    ARRAY (
        SELECT p.name || ' ' || r.id FROM orc.runs r JOIN orc.repositories p ON p.key = r.repo WHERE r.worker = w.key ORDER BY r.key
    )
FROM orc.workers w ORDER BY w.pool, w.name, w.key;

-- name: select_queues
SELECT pool, count(*) FILTER (WHERE state = 'queued'), count(*) FILTER (WHERE state = 'driven'), count(*) FILTER (WHERE state = 'resting')
FROM orc.runs WHERE pool <> '' AND state <> 'ended' GROUP BY pool ORDER BY pool;

-- name: select_placed
SELECT state, pool, priority FROM orc.runs WHERE repo = $1 AND id = $2;

-- name: ship
SELECT orc.ship($1::integer, $2::text, $3::bigint, $4::bigint, $5::text, $6::text, $7::bigint, $8::bigint, $9::bytea);

-- name: select_shipped
SELECT o.effect, o.stream, max(o.at + o.size)::bigint FROM orc.output o
WHERE o.run = (SELECT key FROM orc.runs WHERE repo = $1 AND id = $2) GROUP BY o.effect, o.stream;

-- name: select_output
SELECT o.at + o.size, o.body FROM orc.output o
WHERE o.run = (SELECT key FROM orc.runs WHERE repo = $1 AND id = $2) AND o.effect = $3 AND o.stream = $4 AND o.at >= $5
ORDER BY o.at LIMIT 16;

-- name: select_standing
SELECT r.state, r.epoch FROM orc.runs r JOIN orc.repositories p ON p.key = r.repo WHERE p.name = $1 AND r.id = $2;

-- name: set_limit
SELECT orc.set_limit($1::text, $2::integer);

-- name: select_limits
SELECT name, at_once FROM orc.repositories WHERE at_once IS NOT NULL ORDER BY name;

-- name: carry
SELECT orc.carry($1::integer, $2::text, $3::uuid, $4::double precision);

-- name: start_work
SELECT orc.start_work($1::integer, $2::text, $3::bigint, $4::bigint, $5::text, $6::text, $7::boolean);

-- name: end_work
SELECT orc.end_work($1::integer, $2::text, $3::text);

-- name: limit_account
SELECT orc.limit_account($1::text, $2::integer);

-- name: select_accounts
SELECT name, max(at_once), max(working)::bigint FROM (
    SELECT name, at_once, orc.count_at_work(name, 0, '') AS working FROM orc.accounts
    UNION ALL
    SELECT account, NULL, orc.count_at_work(account, 0, '') FROM (SELECT DISTINCT account FROM orc.at_work) AS found
) AS known GROUP BY name HAVING max(at_once) IS NOT NULL OR max(working) > 0 ORDER BY name;

-- name: select_placing
SELECT placed_by FROM orc.store;

-- name: choose_placing
SELECT orc.choose_placing($1::text);

-- name: select_claimable
SELECT repository, id, epoch, priority FROM orc.claimable($1::bigint, $2::text, $3::double precision, $4::integer);

-- name: claim_hinted
SELECT repository, id, epoch
FROM orc.claim_hinted($1::uuid, $2::bigint, $3::uuid, $4::text, $5::text, $6::text, $7::double precision);

-- name: select_incarnations
SELECT incarnation::text FROM orc.workers WHERE lease_until > clock_timestamp();

-- name: bound_transactions
SELECT set_config('idle_in_transaction_session_timeout', '10s', false);

-- name: insert_schedule
INSERT INTO orc.schedules (repo, name, cron, zone, words, remote, branch, folder, pool, overlap, next_us)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (repo, name) DO NOTHING RETURNING key;

-- name: select_schedules
SELECT s.key, p.name, s.name, s.cron, s.zone, s.words, s.remote, s.branch, s.folder, s.pool, s.overlap, s.paused, s.next_us, s.begun_us,
    s.last_us, s.last_run, s.failure
FROM orc.schedules s JOIN orc.repositories p ON p.key = s.repo WHERE p.name = $1 ORDER BY s.name COLLATE "C";

-- name: delete_schedule
DELETE FROM orc.schedules WHERE repo = $1 AND name = $2 RETURNING key;

-- One that goes on after a pause, or begins it: what was due meanwhile is not made up for; what was begun is finished.
-- name: pause_schedule
UPDATE orc.schedules SET paused = $3, next_us = CASE WHEN begun_us IS NULL THEN $4::bigint ELSE next_us END, again_us = 0
WHERE repo = $1 AND name = $2 RETURNING key;

-- name: take_due
SELECT s.key, p.name, s.name, s.cron, s.zone, s.words, s.remote, s.branch, s.folder, s.pool, s.overlap, s.paused, s.next_us, s.begun_us,
    s.last_us, s.last_run, s.failure
FROM orc.take_due($1::uuid, $2::bigint, $3::uuid, $4::text) s JOIN orc.repositories p ON p.key = s.repo;

-- name: begin_due
UPDATE orc.schedules s SET begun_us = $3 WHERE s.key = $1 AND s.claim = $2 RETURNING orc.find_overlap(s);

-- name: fire
SELECT orc.fire($1::bigint, $2::uuid, $3::integer, $4::text, $5::text, $6::integer, $7::bigint);

-- name: retry_due
UPDATE orc.schedules SET failure = $3, again_us = $4, worker = NULL, claim = NULL WHERE key = $1 AND claim = $2 RETURNING key;

-- name: skip_due
UPDATE orc.schedules SET failure = $3, last_us = begun_us, last_run = '', begun_us = NULL, again_us = 0, next_us = $4, worker = NULL,
    claim = NULL
WHERE key = $1 AND claim = $2 RETURNING key;
