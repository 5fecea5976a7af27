-- Runs that another queue hands out as well: what it may hint at, and the claim that a hint ends in.

-- What places the runs of this database: our own table, or the queues of DBOS. One choice for all workers: there is no mix.
ALTER TABLE orc.store ADD COLUMN placed_by text NOT NULL DEFAULT 'table' CHECK (placed_by IN ('table', 'dbos'));

-- Choose it, unless workers live that go by another one: then false. A worker reads the choice after it has joined.
CREATE FUNCTION orc.choose_placing(wanted text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    LOCK TABLE orc.workers IN SHARE MODE;
    UPDATE orc.store SET placed_by = wanted WHERE placed_by <> wanted
        AND NOT EXISTS (SELECT FROM orc.workers WHERE pool <> '' AND lease_until > clock_timestamp());
    RETURN EXISTS (SELECT FROM orc.store WHERE placed_by = wanted);
END $$;

-- The runs of a pool that a worker could claim now, the most urgent first: queued and ready, or left by a worker whose lease is over,
-- by the word of one whose own has held for a whole lease's time.
CREATE FUNCTION orc.claimable(worker_ bigint, pool_ text, ttl_s double precision, most integer)
RETURNS TABLE (repository text, id text, epoch bigint, priority integer) LANGUAGE plpgsql AS $$
DECLARE
    now_us bigint := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
BEGIN
    RETURN QUERY
    SELECT p.name, f.id, f.epoch, f.priority FROM (
        SELECT c.* FROM orc.runs c WHERE c.pool = pool_ AND c.state IN ('queued', 'resting') AND c.ready_us IS NOT NULL
            AND c.ready_us <= now_us AND orc.has_room(c, now_us)
        UNION ALL
        SELECT r.* FROM orc.workers w JOIN orc.runs r ON r.worker = w.key
        WHERE w.lease_until < clock_timestamp() AND w.key <> worker_ AND r.pool = pool_ AND EXISTS (
            SELECT FROM orc.workers s WHERE s.key = worker_ AND s.held_since <= clock_timestamp() - make_interval(secs => ttl_s)
        )
    ) AS f JOIN orc.repositories p ON p.key = f.repo ORDER BY f.priority DESC, f.ready_us NULLS FIRST, f.key LIMIT most;
END $$;

-- Take one run of a pool that somebody hinted at, if it could be claimed without the hint; else nothing.
CREATE FUNCTION orc.claim_hinted(
    claim_ uuid, worker_ bigint, incarnation_ uuid, pool_ text, repository_ text, id_ text, ttl_s double precision
) RETURNS TABLE (repository text, id text, epoch bigint) LANGUAGE plpgsql AS $$
DECLARE
    now_us bigint := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
    self orc.workers;
    run_ orc.runs;
BEGIN
    SELECT * INTO self FROM orc.workers w
    WHERE w.key = worker_ AND w.incarnation = incarnation_ AND w.lease_until > clock_timestamp() AND NOT w.drain;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT FROM orc.runs r WHERE r.worker = worker_ AND r.claim = claim_) THEN -- else its answer was lost
        PERFORM FROM orc.repositories p WHERE p.name = repository_ AND p.at_once IS NOT NULL FOR NO KEY UPDATE;
        SELECT r.* INTO run_ FROM orc.runs r JOIN orc.repositories p ON p.key = r.repo
        WHERE p.name = repository_ AND r.id = id_ AND r.pool = pool_ FOR NO KEY UPDATE OF r;
        IF NOT FOUND THEN
            RETURN;
        END IF;
        IF run_.worker IS NULL THEN
            IF run_.state NOT IN ('queued', 'resting') OR coalesce(run_.ready_us > now_us, true) OR NOT orc.has_room(run_, now_us) THEN
                RETURN;
            END IF;
        ELSE
            PERFORM FROM orc.workers w WHERE w.key = run_.worker AND w.key <> worker_ AND w.lease_until < clock_timestamp()
                AND self.held_since <= clock_timestamp() - make_interval(secs => ttl_s) FOR NO KEY UPDATE;
            IF NOT FOUND THEN
                RETURN;
            END IF;
        END IF;
        UPDATE orc.runs r SET epoch = r.epoch + 1, worker = worker_, claim = claim_, state = 'driven', ready_us = NULL
        WHERE r.key = run_.key;
    END IF;
    RETURN QUERY
    SELECT p.name, r.id, r.epoch FROM orc.runs r JOIN orc.repositories p ON p.key = r.repo WHERE r.worker = worker_ AND r.claim = claim_;
END $$;

-- Commands that queue a run by the clock. `next_us` is the next due time. `begun_us` is the one that a run is being made for, by
-- `worker` under `claim`: whoever goes on after it makes the run of the same due time. `again_us` is when to try that again.
-- A due time that comes while a run of it has not ended gets none where `overlap` is `skip`, and one beside it where it is `allow`.
CREATE TABLE orc.schedules (
    key        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    repo       integer NOT NULL REFERENCES orc.repositories (key),
    name       text    NOT NULL,
    cron       text    NOT NULL,
    zone       text    NOT NULL,
    words      text[]  NOT NULL,
    remote     text    NOT NULL,
    branch     text    NOT NULL,
    folder     text    NOT NULL,
    pool       text    NOT NULL,
    overlap    text    NOT NULL CHECK (overlap IN ('skip', 'allow')),
    paused     boolean NOT NULL DEFAULT false,
    next_us    bigint  NOT NULL,
    begun_us   bigint,
    again_us   bigint  NOT NULL DEFAULT 0,
    worker     bigint,
    claim      uuid,
    last_us    bigint,
    last_run   text    NOT NULL DEFAULT '',
    last_claim uuid,
    failure    text    NOT NULL DEFAULT '',
    UNIQUE (repo, name)
);

CREATE INDEX schedules_due ON orc.schedules (pool, next_us) WHERE NOT paused;

-- Take one schedule of a pool that is due and that nobody who lives makes a run for; a living worker may take its own again.
CREATE FUNCTION orc.take_due(claim_ uuid, worker_ bigint, incarnation_ uuid, pool_ text)
RETURNS SETOF orc.schedules LANGUAGE plpgsql AS $$
DECLARE
    now_us bigint := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
BEGIN
    PERFORM FROM orc.workers w WHERE w.key = worker_ AND w.incarnation = incarnation_ AND w.lease_until > clock_timestamp() AND NOT w.drain;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    RETURN QUERY
    UPDATE orc.schedules s SET worker = worker_, claim = claim_ WHERE s.key = (
        SELECT d.key FROM orc.schedules d WHERE d.pool = pool_ AND NOT d.paused AND d.next_us <= now_us AND d.again_us <= now_us
            AND (d.worker = worker_ OR NOT EXISTS (SELECT FROM orc.workers w WHERE w.key = d.worker AND w.lease_until > clock_timestamp()))
        ORDER BY d.next_us, d.key LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
    ) RETURNING s.*;
END $$;

-- The newest run of a schedule that has not ended, where no other may run beside it; else NULL. One that was taken out of the queue, as when
-- it goes on in another store, is in nobody's way.
CREATE FUNCTION orc.find_overlap(due orc.schedules) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT r.id FROM orc.runs r
    WHERE due.overlap = 'skip' AND r.repo = due.repo AND r.schedule = due.name AND r.schedule <> '' AND r.pool <> '' AND r.state <> 'ended'
    ORDER BY r.key DESC LIMIT 1
$$;

-- Queue the run of a due time and move on to the next one, both or neither; only by whoever has the schedule now. NULL if the schedule is
-- gone, false if somebody else has it, or the run is nothing to queue.
CREATE FUNCTION orc.fire(key_ bigint, claim_ uuid, repo_ integer, id_ text, pool_ text, priority_ integer, next_us_ bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    due orc.schedules;
BEGIN
    SELECT * INTO due FROM orc.schedules WHERE key = key_ FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF due.last_claim = claim_ THEN
        RETURN due.last_run = id_; -- its answer was lost
    END IF;
    IF due.claim IS DISTINCT FROM claim_ OR due.begun_us IS NULL THEN
        RETURN false;
    END IF;
    UPDATE orc.runs SET state = 'queued', pool = pool_, priority = priority_, ready_us = 0, schedule = due.name
    WHERE repo = repo_ AND id = id_ AND worker IS NULL AND pool = '';
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE orc.schedules SET last_us = begun_us, last_run = id_, last_claim = claim_, failure = '', begun_us = NULL, again_us = 0,
        next_us = next_us_, worker = NULL, claim = NULL
    WHERE key = key_;
    PERFORM pg_notify('orc', 'queue/' || pool_);
    RETURN true;
END $$;
