-- The first schema: runs of many repositories, driven by processes on many hosts. Rules and reasons: docs/adr/0017.
--
-- A write is one call of one function, so that a client that freezes in the middle holds no lock. A function locks the run's row
-- first and looks in its next statement, which sees what was committed while it waited. Every write carries a token; one that comes
-- again because its answer was lost is recognised by it.
CREATE SCHEMA IF NOT EXISTS orc;

-- One row: the store tells itself from any other by its ident, and knows the version of its schema.
CREATE TABLE orc.store (
    ident   text NOT NULL,
    version integer NOT NULL
);

INSERT INTO orc.store (ident, version) VALUES (replace(gen_random_uuid()::text, '-', ''), 0);

CREATE TABLE orc.repositories (
    key  integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text    NOT NULL UNIQUE
);

-- Processes that drive runs. `lease_until` goes by the server's clock; `held_since` says since when it was never over.
CREATE TABLE orc.workers (
    key         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text        NOT NULL,
    host        text        NOT NULL,
    boot        text        NOT NULL,
    pid         integer     NOT NULL,
    incarnation uuid        NOT NULL UNIQUE,
    pool        text        NOT NULL,
    capacity    integer     NOT NULL,
    root        text        NOT NULL,
    version     text        NOT NULL,
    joined      timestamptz NOT NULL,
    held_since  timestamptz NOT NULL,
    lease_until timestamptz NOT NULL,
    drain       boolean     NOT NULL DEFAULT false
) WITH (fillfactor = 50);

CREATE INDEX workers_by_lease ON orc.workers (lease_until);

-- `seq` is the last row of the journal. `epoch` counts those who drove the run: the fence. `claim` is the token of the last one.
-- A run with a pool is placed by the queue; one without belongs to whoever started it. `ready_us` says from when on the
-- queue may place it. `schedule` is the name of the one that it is of: removed and added anew, it still knows its runs. The row is
-- written with every append: room is left in its page, and no index is on what changes then.
CREATE TABLE orc.runs (
    key        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    repo       integer NOT NULL,
    id         text COLLATE "C" NOT NULL,
    system     text    NOT NULL,
    name       text    NOT NULL,
    context    bytea   NOT NULL,
    summary    bytea   NOT NULL,
    created_us bigint  NOT NULL,
    updated_us bigint  NOT NULL,
    ended      boolean NOT NULL,
    seq        bigint  NOT NULL DEFAULT 0,
    epoch      bigint  NOT NULL DEFAULT 0,
    worker     bigint,
    claim      uuid,
    state      text    NOT NULL DEFAULT 'resting' CHECK (state IN ('resting', 'queued', 'driven', 'ended')),
    pool       text    NOT NULL DEFAULT '',
    priority   integer NOT NULL DEFAULT 0,
    ready_us   bigint,
    schedule   text    NOT NULL DEFAULT '',
    UNIQUE (repo, id)
) WITH (fillfactor = 50);

CREATE INDEX runs_by_time ON orc.runs (repo, created_us, key);
CREATE INDEX runs_by_end ON orc.runs (repo, ended, created_us, key);
CREATE INDEX runs_by_system ON orc.runs (repo, system, created_us, key);
CREATE INDEX runs_by_name ON orc.runs (repo, name, created_us, key);
CREATE INDEX runs_by_schedule ON orc.runs (repo, schedule, key) WHERE schedule <> '';
CREATE INDEX runs_by_worker ON orc.runs (worker) WHERE worker IS NOT NULL;
CREATE INDEX runs_to_place ON orc.runs (pool, priority DESC, ready_us) WHERE state IN ('queued', 'resting') AND ready_us IS NOT NULL;

CREATE TABLE orc.specs (
    run  bigint PRIMARY KEY,
    body bytea NOT NULL
);

-- Keys of rows of all journals, in the order of which they are read. They are taken before their transactions commit, so that they
-- commit out of order: see orc.horizon.
CREATE SEQUENCE orc.event_keys;

-- A row of run 0 says that the run whose id is its body is gone or has another id.
CREATE TABLE orc.events (
    run   bigint  NOT NULL,
    seq   bigint  NOT NULL,
    repo  integer NOT NULL,
    key   bigint  NOT NULL,
    batch uuid,
    at_us bigint  NOT NULL,
    body  bytea   NOT NULL,
    PRIMARY KEY (run, seq)
);

CREATE INDEX events_by_key ON orc.events (repo, key);

-- Directives stay after they were taken: their id is what makes a repeated one count once.
CREATE TABLE orc.inbox (
    repo      integer NOT NULL,
    id        text    NOT NULL,
    key       bigint GENERATED ALWAYS AS IDENTITY,
    run       bigint  NOT NULL,
    batch     uuid,
    posted_us bigint  NOT NULL,
    body      bytea   NOT NULL,
    taken_us  bigint,
    PRIMARY KEY (repo, id)
);

CREATE INDEX inbox_waiting ON orc.inbox (run) WHERE taken_us IS NULL;

-- The ledger outlives runs. Its sums are columns: they are asked for with each reservation.
CREATE TABLE orc.usage (
    run      bigint  NOT NULL,
    effect   text    NOT NULL,
    "offset" bigint  NOT NULL,
    repo     integer NOT NULL,
    unit     text    NOT NULL,
    agent    text    NOT NULL,
    model    text    NOT NULL,
    at_us    bigint  NOT NULL,
    cost_usd double precision,
    tokens   bigint  NOT NULL,
    wall_s   double precision NOT NULL,
    body     text    NOT NULL,
    PRIMARY KEY (run, effect, "offset")
);

CREATE INDEX usage_by_time ON orc.usage (repo, at_us) INCLUDE (cost_usd, tokens, wall_s);

CREATE TABLE orc.pruned (
    key  bigint PRIMARY KEY,
    repo integer NOT NULL,
    id   text    NOT NULL
);

CREATE TABLE orc.reservations (
    run      bigint  NOT NULL,
    effect   text    NOT NULL,
    repo     integer NOT NULL,
    batch    uuid,
    at_us    bigint  NOT NULL,
    cost_usd double precision NOT NULL,
    tokens   bigint  NOT NULL,
    PRIMARY KEY (repo, effect)
) WITH (fillfactor = 50);

CREATE INDEX reservations_by_run ON orc.reservations (run);

-- Rate limits belong to an account, whatever the repository.
CREATE TABLE orc.rate_windows (
    account   text    NOT NULL,
    name      text    NOT NULL,
    resets_us bigint  NOT NULL,
    seen_us   bigint  NOT NULL,
    strikes   integer NOT NULL,
    PRIMARY KEY (account, name)
);

CREATE TABLE orc.printed (
    key  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run  bigint NOT NULL,
    path text   NOT NULL,
    body text   NOT NULL
);

CREATE INDEX printed_by_run ON orc.printed (run, path, key);

CREATE TABLE orc.cursors (
    repo   integer NOT NULL,
    reader text    NOT NULL,
    key    bigint  NOT NULL,
    batch  uuid,
    body   bytea   NOT NULL,
    PRIMARY KEY (repo, reader)
);

CREATE TABLE orc.deliveries (
    repo     integer NOT NULL,
    reader   text COLLATE "C" NOT NULL,
    key      bigint  NOT NULL,
    kind     text COLLATE "C" NOT NULL,
    body     bytea   NOT NULL,
    given_up boolean NOT NULL,
    PRIMARY KEY (repo, reader, key, kind)
);

-- The tail. A key that is taken later may be committed earlier, and whoever reads on from the greatest key it saw would miss the
-- other one. So a writer, before it takes a key, locks the last one that was given out, shared, until its transaction is over; a
-- reader takes no row beyond the least that is locked. Locks go after a commit is seen, so below that nothing can appear any more.
-- Nobody waits for anybody. (Keys by transaction ids would not outlive a dump; a lock around key and commit would queue all writers.)
CREATE FUNCTION orc.enter() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(1869767471, (CASE WHEN is_called THEN last_value % 2147483648 ELSE 0 END)::integer)
    FROM orc.event_keys;
END $$;

CREATE FUNCTION orc.horizon() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    newest bigint;
    behind bigint;
BEGIN
    SELECT CASE WHEN is_called THEN last_value ELSE 0 END INTO newest FROM orc.event_keys;
    -- Only the lower 31 bits are in the lock; one that is beyond the newest was taken since.
    SELECT max(lag) INTO behind FROM (
        SELECT (newest % 2147483648 - objid::bigint + 2147483648) % 2147483648 AS lag FROM pg_locks
        WHERE locktype = 'advisory' AND classid = 1869767471::oid AND objsubid = 2
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    ) AS locks WHERE lag < 1073741824;
    RETURN newest - coalesce(behind, 0);
END $$;

CREATE FUNCTION orc.since(repo_ integer, after_ bigint, most_ bigint)
RETURNS TABLE (key bigint, run text, seq bigint, at_us bigint, body bytea) LANGUAGE plpgsql AS $$
DECLARE
    until bigint := orc.horizon();
BEGIN
    RETURN QUERY
    SELECT e.key, coalesce(r.id, convert_from(e.body, 'UTF8')), e.seq, e.at_us, CASE WHEN e.run = 0 THEN NULL ELSE e.body END
    FROM orc.events e LEFT JOIN orc.runs r ON r.key = e.run
    WHERE e.repo = repo_ AND e.key > after_ AND e.key <= until ORDER BY e.key LIMIT most_;
END $$;

CREATE FUNCTION orc.newest(repo_ integer) RETURNS TABLE (ident text, key bigint) LANGUAGE plpgsql AS $$
DECLARE
    until bigint := orc.horizon();
BEGIN
    RETURN QUERY
    SELECT s.ident, coalesce((SELECT max(e.key) FROM orc.events e WHERE e.repo = repo_ AND e.key <= until), 0) FROM orc.store s;
END $$;

CREATE FUNCTION orc.repository(name_ text) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO orc.repositories (name) VALUES (name_) ON CONFLICT DO NOTHING;
    RETURN (SELECT key FROM orc.repositories WHERE name = name_);
END $$;

-- True if a writer with this epoch may write: it drives the run; or, without an epoch, nobody does.
CREATE FUNCTION orc.may_write(run orc.runs, worker_ bigint, epoch_ bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN epoch_ = 0 THEN run.worker IS NULL
        ELSE run.epoch = epoch_ AND run.worker IS NOT DISTINCT FROM worker_ END
$$;

-- The parts of an append that are rarely there. Launches that are over have nothing set aside, and work for no account.
CREATE FUNCTION orc.append_more(run_ bigint, repo_ integer, at_us_ bigint, more json) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF more -> 'taken' IS NOT NULL THEN
        UPDATE orc.inbox SET taken_us = at_us_
        WHERE repo = repo_ AND id IN (SELECT json_array_elements_text(more -> 'taken'));
    END IF;
    IF more -> 'usage' IS NOT NULL THEN
        INSERT INTO orc.usage (run, effect, "offset", repo, unit, agent, model, at_us, cost_usd, tokens, wall_s, body)
        SELECT run_, u.effect, u."offset", repo_, u.unit, u.agent, u.model, at_us_, u.cost_usd, u.tokens, u.wall_s, u.body
        FROM json_to_recordset(more -> 'usage') AS u (
            effect text, "offset" bigint, unit text, agent text, model text, cost_usd double precision, tokens bigint,
            wall_s double precision, body text
        ) ON CONFLICT DO NOTHING;
    END IF;
    IF more -> 'windows' IS NOT NULL THEN
        INSERT INTO orc.rate_windows AS known (account, name, resets_us, seen_us, strikes)
        SELECT w.account, w.name, w.resets_us, w.seen_us, w.strikes
        FROM json_to_recordset(more -> 'windows') AS w (account text, name text, resets_us bigint, seen_us bigint, strikes integer)
        ORDER BY w.account, w.name
        ON CONFLICT (account, name) DO UPDATE
        SET resets_us = excluded.resets_us, seen_us = excluded.seen_us, strikes = excluded.strikes
        WHERE known.seen_us <= excluded.seen_us;
    END IF;
    IF more -> 'over' IS NOT NULL THEN
        DELETE FROM orc.reservations
        WHERE repo = repo_ AND effect IN (SELECT json_array_elements_text(more -> 'over'));
        DELETE FROM orc.at_work WHERE run = run_ AND effect IN (SELECT json_array_elements_text(more -> 'over'));
    END IF;
    IF more -> 'release_all' IS NOT NULL THEN
        DELETE FROM orc.reservations WHERE run = run_;
    END IF;
    IF more -> 'printed' IS NOT NULL THEN
        INSERT INTO orc.printed (run, path, body)
        SELECT run_, p.path, p.body
        FROM json_to_recordset(more -> 'printed') AS p (path text, body text)
        -- One that comes again because its answer was lost is there already.
        WHERE p.body IS DISTINCT FROM (
            SELECT known.body FROM orc.printed known WHERE known.run = run_ AND known.path = p.path
            ORDER BY known.key DESC LIMIT 1
        );
        DELETE FROM orc.printed old WHERE old.run = run_
            AND old.path IN (SELECT p.path FROM json_to_recordset(more -> 'printed') AS p (path text))
            AND (
                SELECT count(*) FROM orc.printed newer
                WHERE newer.run = old.run AND newer.path = old.path AND newer.key > old.key
            ) >= 16;
    END IF;
END $$;

-- Commit a batch: the parts of several runs, each by itself. An answer for each: NULL for done, -2 for fenced, -1 for no such run,
-- else the sequence number that was found instead of the expected one. The caller sorts runs by their ids: no deadlocks.
CREATE FUNCTION orc.append(
    batch_ uuid, repo_ integer, worker_ bigint, runs_ text[], epochs bigint[], expected bigint[], times bigint[], bodies bytea[],
    summaries bytea[], ends boolean[], mores json[]
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    answers bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(runs_)]);
    run_ orc.runs;
    key_ bigint;
BEGIN
    PERFORM orc.enter();
    FOR i IN 1 .. cardinality(runs_) LOOP
        -- It waits for whoever writes the row, and judges what is there then. The fence is that of orc.may_write.
        UPDATE orc.runs SET seq = seq + 1, summary = coalesce(summaries[i], summary), ended = coalesce(ends[i], ended),
            updated_us = CASE WHEN summaries[i] IS NULL THEN updated_us ELSE times[i] END
        WHERE repo = repo_ AND id = runs_[i] AND seq = expected[i] AND bodies[i] IS NOT NULL
            AND CASE WHEN epochs[i] = 0 THEN worker IS NULL ELSE epoch = epochs[i] AND worker IS NOT DISTINCT FROM worker_ END
        RETURNING key INTO key_;
        IF FOUND THEN
            INSERT INTO orc.events (run, seq, repo, key, batch, at_us, body)
            VALUES (key_, expected[i] + 1, repo_, nextval('orc.event_keys'), batch_, times[i], bodies[i]);
        ELSE
            SELECT * INTO run_ FROM orc.runs WHERE repo = repo_ AND id = runs_[i] FOR NO KEY UPDATE;
            IF NOT FOUND THEN
                answers[i] := -1;
                CONTINUE;
            END IF;
            IF bodies[i] IS NOT NULL AND run_.seq > expected[i] AND EXISTS (
                SELECT FROM orc.events WHERE run = run_.key AND seq = expected[i] + 1 AND batch = batch_
            ) THEN
                CONTINUE; -- It was written, and its answer lost.
            END IF;
            IF NOT orc.may_write(run_, worker_, epochs[i]) THEN
                answers[i] := -2;
                CONTINUE;
            END IF;
            IF bodies[i] IS NOT NULL THEN
                answers[i] := run_.seq;
                CONTINUE;
            END IF;
            PERFORM nextval('orc.event_keys'); -- Whoever looks for changes sees one.
            key_ := run_.key;
            IF summaries[i] IS NOT NULL THEN
                UPDATE orc.runs SET summary = summaries[i], updated_us = times[i], ended = ends[i] WHERE key = key_;
            END IF;
        END IF;
        IF mores[i] IS NOT NULL THEN
            PERFORM orc.append_more(key_, repo_, times[i], mores[i]);
        END IF;
    END LOOP;
    RETURN answers;
END $$;

-- Insert a run, driven by the worker that makes it if it says so, with rows copied from another run and its first append.
-- NULL if the id is used, else the epoch.
CREATE FUNCTION orc.create_run(
    batch_ uuid, repo_ integer, worker_ bigint, claim_ uuid, id_ text, system_ text, name_ text, context_ bytea, spec_ bytea,
    summary_ bytea, created_us_ bigint, ended_ boolean, seqs bigint[], times bigint[], bodies bytea[], expected bigint,
    at_us_ bigint, body_ bytea, more json
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    run_ orc.runs;
BEGIN
    PERFORM orc.enter();
    INSERT INTO orc.runs (repo, id, system, name, context, summary, created_us, updated_us, ended, seq, epoch, worker, claim, state)
    VALUES (
        repo_, id_, system_, name_, context_, summary_, created_us_, created_us_, ended_,
        CASE WHEN body_ IS NULL THEN expected ELSE expected + 1 END, CASE WHEN worker_ IS NULL THEN 0 ELSE 1 END, worker_, claim_,
        CASE WHEN worker_ IS NULL THEN 'resting' ELSE 'driven' END
    ) ON CONFLICT (repo, id) DO NOTHING RETURNING * INTO run_;
    IF NOT FOUND THEN
        -- Made by us if the first row is this batch's.
        RETURN (
            SELECT r.epoch FROM orc.runs r JOIN orc.events e ON e.run = r.key
            WHERE r.repo = repo_ AND r.id = id_ AND e.seq = expected + 1 AND e.batch = batch_
        );
    END IF;
    INSERT INTO orc.specs (run, body) VALUES (run_.key, spec_);
    INSERT INTO orc.events (run, seq, repo, key, batch, at_us, body)
    SELECT run_.key, c.seq, repo_, nextval('orc.event_keys'), batch_, c.at_us, c.body
    FROM unnest(seqs, times, bodies) WITH ORDINALITY AS c (seq, at_us, body, n) ORDER BY c.n;
    IF body_ IS NOT NULL THEN
        INSERT INTO orc.events (run, seq, repo, key, batch, at_us, body)
        VALUES (run_.key, expected + 1, repo_, nextval('orc.event_keys'), batch_, at_us_, body_);
    END IF;
    UPDATE orc.runs SET updated_us = at_us_ WHERE key = run_.key AND updated_us <> at_us_;
    IF more IS NOT NULL THEN
        PERFORM orc.append_more(run_.key, repo_, at_us_, more);
    END IF;
    RETURN run_.epoch;
END $$;

-- Put a directive into the inbox; a run that rests in a pool is queued. NULL if there is no such run.
CREATE FUNCTION orc.post(batch_ uuid, repo_ integer, run_ text, id_ text, at_us_ bigint, body_ bytea)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    key_ bigint;
    posted boolean;
BEGIN
    PERFORM orc.enter();
    SELECT key INTO key_ FROM orc.runs WHERE repo = repo_ AND id = run_ FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    INSERT INTO orc.inbox (repo, id, run, batch, posted_us, body) VALUES (repo_, id_, key_, batch_, at_us_, body_)
    ON CONFLICT DO NOTHING;
    IF FOUND THEN
        posted := true;
        PERFORM nextval('orc.event_keys');
    ELSE
        SELECT batch = batch_ INTO posted FROM orc.inbox WHERE repo = repo_ AND id = id_;
    END IF;
    IF posted THEN
        UPDATE orc.runs SET state = 'queued', ready_us = 0 WHERE key = key_ AND pool <> '' AND state IN ('resting', 'ended');
        PERFORM pg_notify('orc', repo_ || '/' || run_);
    END IF;
    RETURN coalesce(posted, false);
END $$;

-- Set dollars and tokens of the day aside, if with everything else they stay within the limit. NULL if fenced.
CREATE FUNCTION orc.reserve(
    batch_ uuid, repo_ integer, worker_ bigint, run_id text, epoch_ bigint, effect_ text, usd double precision, tokens_ bigint,
    limit_usd double precision, limit_tokens bigint, since_us bigint, at_us_ bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    run_ orc.runs;
    sum_usd double precision;
    sum_tokens bigint;
BEGIN
    PERFORM orc.enter();
    SELECT * INTO run_ FROM orc.runs WHERE repo = repo_ AND id = run_id FOR NO KEY UPDATE;
    IF NOT FOUND OR NOT orc.may_write(run_, worker_, epoch_) THEN
        RETURN NULL;
    END IF;
    PERFORM FROM orc.repositories WHERE key = repo_ FOR NO KEY UPDATE; -- One after the other; what they took is seen below.
    IF EXISTS (SELECT FROM orc.reservations WHERE repo = repo_ AND effect = effect_ AND batch = batch_) THEN
        RETURN true;
    END IF;
    SELECT coalesce(sum(u.cost_usd), 0) + usd, coalesce(sum(u.tokens), 0) + tokens_ INTO sum_usd, sum_tokens
    FROM orc.usage u WHERE u.repo = repo_ AND u.at_us >= since_us;
    SELECT coalesce(sum(r.cost_usd), 0) + sum_usd, coalesce(sum(r.tokens), 0) + sum_tokens INTO sum_usd, sum_tokens
    FROM orc.reservations r WHERE r.repo = repo_ AND r.at_us >= since_us AND r.effect <> effect_;
    IF sum_usd > limit_usd + 1e-9 OR sum_tokens > limit_tokens THEN
        RETURN false;
    END IF;
    INSERT INTO orc.reservations (run, effect, repo, batch, at_us, cost_usd, tokens)
    VALUES (run_.key, effect_, repo_, batch_, at_us_, usd, tokens_)
    ON CONFLICT (repo, effect) DO UPDATE SET batch = batch_, at_us = at_us_, cost_usd = usd, tokens = tokens_;
    PERFORM nextval('orc.event_keys');
    RETURN true;
END $$;

CREATE FUNCTION orc.say_change(repo_ integer, id_ text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    key_ bigint := nextval('orc.event_keys');
BEGIN
    INSERT INTO orc.events (run, seq, repo, key, at_us, body)
    VALUES (
        0, key_, repo_, key_, coalesce((SELECT at_us FROM orc.events WHERE repo = repo_ ORDER BY key DESC LIMIT 1), 0),
        convert_to(id_, 'UTF8')
    );
END $$;

-- Nobody drives a run under its new id.
CREATE FUNCTION orc.rename_run(repo_ integer, key_ bigint, to_ text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    old text;
BEGIN
    PERFORM orc.enter();
    SELECT id INTO old FROM orc.runs WHERE key = key_ AND id <> to_ FOR UPDATE;
    IF FOUND THEN
        UPDATE orc.runs SET id = to_, worker = NULL, pool = '', ready_us = NULL, state = CASE WHEN ended THEN 'ended' ELSE 'resting' END
        WHERE key = key_;
        PERFORM orc.say_change(repo_, old);
        PERFORM orc.say_change(repo_, to_);
    END IF;
END $$;

CREATE FUNCTION orc.delete_run(repo_ integer, key_ bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    id_ text;
BEGIN
    PERFORM orc.enter();
    DELETE FROM orc.runs WHERE key = key_ RETURNING id INTO id_;
    IF FOUND THEN
        INSERT INTO orc.pruned (key, repo, id) VALUES (key_, repo_, id_);
        DELETE FROM orc.events WHERE run = key_;
        DELETE FROM orc.inbox WHERE run = key_;
        DELETE FROM orc.reservations WHERE run = key_;
        DELETE FROM orc.printed WHERE run = key_;
        DELETE FROM orc.specs WHERE run = key_;
        PERFORM orc.say_change(repo_, id_);
    END IF;
END $$;

-- Move a reader's place on from where it was, NULL for nowhere, and keep what it has to deliver.
CREATE FUNCTION orc.advance(
    batch_ uuid, repo_ integer, reader_ text, expected bigint, key_ bigint, body_ bytea, readers text[], keys bigint[],
    kinds text[], bodies bytea[], over boolean[]
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF expected IS NULL THEN
        INSERT INTO orc.cursors (repo, reader, key, batch, body) VALUES (repo_, reader_, key_, batch_, body_) ON CONFLICT DO NOTHING;
    ELSE
        UPDATE orc.cursors SET key = key_, batch = batch_, body = body_ WHERE repo = repo_ AND reader = reader_ AND key = expected;
    END IF;
    IF NOT FOUND THEN
        RETURN EXISTS (SELECT FROM orc.cursors WHERE repo = repo_ AND reader = reader_ AND batch = batch_);
    END IF;
    INSERT INTO orc.deliveries AS known (repo, reader, key, kind, body, given_up)
    SELECT repo_, d.reader, d.key, d.kind, d.body, d.over FROM unnest(readers, keys, kinds, bodies, over) AS d (reader, key, kind, body, over)
    ON CONFLICT (repo, reader, key, kind) DO UPDATE SET body = excluded.body, given_up = excluded.given_up;
    RETURN true;
END $$;

-- Workers and their leases.
CREATE FUNCTION orc.join_workers(
    incarnation_ uuid, name_ text, host_ text, boot_ text, pid_ integer, pool_ text, capacity_ integer, root_ text, version_ text,
    ttl_s double precision
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    key_ bigint;
BEGIN
    INSERT INTO orc.workers (name, host, boot, pid, incarnation, pool, capacity, root, version, joined, held_since, lease_until)
    VALUES (
        name_, host_, boot_, pid_, incarnation_, pool_, capacity_, root_, version_, clock_timestamp(), clock_timestamp(),
        clock_timestamp() + make_interval(secs => ttl_s)
    ) ON CONFLICT (incarnation) DO NOTHING RETURNING key INTO key_;
    RETURN coalesce(key_, (SELECT key FROM orc.workers WHERE incarnation = incarnation_));
END $$;

-- Renew a lease. No row if it is not ours any more.
CREATE FUNCTION orc.beat(worker_ bigint, incarnation_ uuid, ttl_s double precision)
RETURNS TABLE (drain boolean, held_s double precision) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY
    UPDATE orc.workers w SET lease_until = clock_timestamp() + make_interval(secs => ttl_s),
        held_since = CASE WHEN w.lease_until < clock_timestamp() THEN clock_timestamp() ELSE w.held_since END
    WHERE w.key = worker_ AND w.incarnation = incarnation_
    RETURNING w.drain, extract(epoch FROM clock_timestamp() - w.held_since)::double precision;
END $$;

-- Forget a worker that drives nothing any more, and those long gone.
CREATE FUNCTION orc.leave_workers(worker_ bigint, incarnation_ uuid) RETURNS void LANGUAGE sql AS $$
    DELETE FROM orc.workers w WHERE (
        (w.key = worker_ AND w.incarnation = incarnation_) OR w.lease_until < clock_timestamp() - interval '1 day'
    ) AND NOT EXISTS (SELECT FROM orc.runs r WHERE r.worker = w.key)
$$;

-- Take a run up because somebody asks for it: nobody drives it, its driver's lease is over, or its driver is known to be dead, as
-- the caller says with `dead`. With an epoch it is ours; without one, `owner` names who has it, and `worker` its key.
-- Without a run there is nothing to take up, and nothing is answered.
CREATE FUNCTION orc.own(claim_ uuid, repo_ integer, id_ text, worker_ bigint, incarnation_ uuid, dead bigint)
RETURNS TABLE (epoch bigint, worker bigint, host text, boot text, pid integer, over boolean) LANGUAGE plpgsql AS $$
DECLARE
    run_ orc.runs;
    owner orc.workers;
BEGIN
    SELECT * INTO run_ FROM orc.runs WHERE repo = repo_ AND id = id_ FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF run_.worker IS NOT NULL AND run_.claim IS DISTINCT FROM claim_ THEN
        SELECT * INTO owner FROM orc.workers w WHERE w.key = run_.worker FOR NO KEY UPDATE;
        IF FOUND AND owner.key IS DISTINCT FROM dead AND (owner.key = worker_ OR owner.lease_until > clock_timestamp()) THEN
            RETURN QUERY SELECT NULL::bigint, owner.key, owner.host, owner.boot, owner.pid, owner.lease_until <= clock_timestamp();
            RETURN;
        END IF;
    END IF;
    -- Only with a lease of our own.
    PERFORM FROM orc.workers w WHERE w.key = worker_ AND w.incarnation = incarnation_ AND w.lease_until > clock_timestamp();
    IF NOT FOUND THEN
        RETURN QUERY SELECT NULL::bigint, NULL::bigint, ''::text, ''::text, 0, true;
        RETURN;
    END IF;
    IF run_.claim IS DISTINCT FROM claim_ THEN
        UPDATE orc.runs r SET epoch = r.epoch + 1, worker = worker_, claim = claim_, state = 'driven', ready_us = NULL
        WHERE r.key = run_.key RETURNING * INTO run_;
    END IF;
    RETURN QUERY SELECT run_.epoch, worker_, ''::text, ''::text, 0, false;
END $$;

-- Queue a run that nobody drives.
CREATE FUNCTION orc.queue(repo_ integer, id_ text, pool_ text, priority_ integer, ready_us_ bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    run_ orc.runs;
BEGIN
    SELECT * INTO run_ FROM orc.runs WHERE repo = repo_ AND id = id_ FOR NO KEY UPDATE;
    IF NOT FOUND OR run_.worker IS NOT NULL THEN
        RETURN false;
    END IF;
    UPDATE orc.runs SET state = 'queued', pool = pool_, priority = priority_, ready_us = ready_us_ WHERE key = run_.key;
    PERFORM pg_notify('orc', 'queue/' || pool_);
    RETURN true;
END $$;

-- Take runs of a pool over from workers whose lease is over: by one whose own lease has held for a whole lease's time, since after
-- an outage everybody's is over. It begins with dead workers, who are few.
CREATE FUNCTION orc.take_over(claim_ uuid, worker_ bigint, incarnation_ uuid, pool_ text, room integer, ttl_s double precision)
RETURNS TABLE (repository text, id text, epoch bigint) LANGUAGE plpgsql AS $$
DECLARE
    dead record;
    taken integer;
    room_left integer := room;
BEGIN
    PERFORM FROM orc.workers w WHERE w.key = worker_ AND w.incarnation = incarnation_ AND NOT w.drain
        AND w.lease_until > clock_timestamp() AND w.held_since <= clock_timestamp() - make_interval(secs => ttl_s);
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT FROM orc.runs r WHERE r.worker = worker_ AND r.claim = claim_) THEN
        FOR dead IN
            SELECT w.key FROM orc.workers w WHERE w.lease_until < clock_timestamp() AND w.key <> worker_
                AND EXISTS (SELECT FROM orc.runs r WHERE r.worker = w.key AND r.pool = pool_)
            ORDER BY w.lease_until FOR NO KEY UPDATE SKIP LOCKED
        LOOP
            EXIT WHEN room_left <= 0;
            UPDATE orc.runs r SET epoch = r.epoch + 1, worker = worker_, claim = claim_, state = 'driven', ready_us = NULL
            WHERE r.key IN (
                SELECT c.key FROM orc.runs c WHERE c.worker = dead.key AND c.pool = pool_
                ORDER BY c.priority DESC, c.key LIMIT room_left FOR NO KEY UPDATE SKIP LOCKED
            );
            GET DIAGNOSTICS taken = ROW_COUNT;
            room_left := room_left - taken;
        END LOOP;
    END IF;
    RETURN QUERY
    SELECT p.name, r.id, r.epoch FROM orc.runs r JOIN orc.repositories p ON p.key = r.repo WHERE r.worker = worker_ AND r.claim = claim_;
END $$;

-- Let go of a run: it has ended, or rests until a directive comes or it is ready. A directive that came meanwhile queues it at once.
CREATE FUNCTION orc.release(repo_ integer, id_ text, worker_ bigint, epoch_ bigint, ready_us_ bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    run_ orc.runs;
    state_ text;
BEGIN
    SELECT * INTO run_ FROM orc.runs WHERE repo = repo_ AND id = id_ FOR NO KEY UPDATE;
    IF NOT FOUND OR run_.worker IS DISTINCT FROM worker_ OR run_.epoch <> epoch_ THEN
        RETURN NULL;
    END IF;
    state_ := CASE WHEN run_.ended THEN 'ended' ELSE 'resting' END;
    IF run_.pool <> '' AND EXISTS (SELECT FROM orc.inbox WHERE run = run_.key AND taken_us IS NULL) THEN
        state_ := 'queued';
        ready_us_ := 0;
        PERFORM pg_notify('orc', 'queue/' || run_.pool);
    END IF;
    UPDATE orc.runs SET worker = NULL, claim = NULL, state = state_, ready_us = CASE WHEN state_ = 'ended' THEN NULL ELSE ready_us_ END
    WHERE key = run_.key;
    RETURN state_;
END $$;
