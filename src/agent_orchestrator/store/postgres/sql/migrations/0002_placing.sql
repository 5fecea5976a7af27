-- Workers that take runs from queues: what a restarted one inherits from itself, who they are, and what is asked of them.

-- Take over what an earlier process of the same worker had, known to be dead because its lock on the host is free: at once, so that
-- its agents, which live on, are adopted.
CREATE FUNCTION orc.inherit(claim_ uuid, worker_ bigint, incarnation_ uuid)
RETURNS TABLE (repository text, id text, epoch bigint) LANGUAGE plpgsql AS $$
DECLARE
    self orc.workers;
BEGIN
    SELECT * INTO self FROM orc.workers w WHERE w.key = worker_ AND w.incarnation = incarnation_ AND w.lease_until > clock_timestamp();
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT FROM orc.runs r WHERE r.worker = worker_ AND r.claim = claim_) THEN -- else its answer was lost
        UPDATE orc.runs r SET epoch = r.epoch + 1, worker = worker_, claim = claim_, state = 'driven', ready_us = NULL
        WHERE r.pool <> '' AND r.worker IN (
            SELECT w.key FROM orc.workers w
            WHERE w.name = self.name AND w.host = self.host AND w.boot = self.boot AND w.key <> worker_
        );
    END IF;
    DELETE FROM orc.workers w
    WHERE w.name = self.name AND w.host = self.host AND w.boot = self.boot AND w.key <> worker_
        AND NOT EXISTS (SELECT FROM orc.runs r WHERE r.worker = w.key);
    RETURN QUERY
    SELECT p.name, r.id, r.epoch FROM orc.runs r JOIN orc.repositories p ON p.key = r.repo WHERE r.worker = worker_ AND r.claim = claim_;
END $$;

-- Take one run for a worker that is to drive nothing else: from its queue, or where it rests.
CREATE FUNCTION orc.claim_one(claim_ uuid, worker_ bigint, incarnation_ uuid, id_ text)
RETURNS TABLE (repository text, id text, epoch bigint) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM orc.workers w WHERE w.key = worker_ AND w.incarnation = incarnation_ AND w.lease_until > clock_timestamp();
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT FROM orc.runs r WHERE r.worker = worker_ AND r.claim = claim_) THEN
        UPDATE orc.runs r SET epoch = r.epoch + 1, worker = worker_, claim = claim_, state = 'driven', ready_us = NULL
        WHERE r.key IN (
            SELECT c.key FROM orc.runs c WHERE c.id = id_ AND c.pool <> '' AND c.worker IS NULL ORDER BY c.key LIMIT 1
            FOR NO KEY UPDATE SKIP LOCKED
        );
    END IF;
    RETURN QUERY
    SELECT p.name, r.id, r.epoch FROM orc.runs r JOIN orc.repositories p ON p.key = r.repo WHERE r.worker = worker_ AND r.claim = claim_;
END $$;

-- Ask every worker of a name to take nothing new and to leave when it has driven what it has; or that no more. How many there are.
CREATE FUNCTION orc.drain(name_ text, wanted boolean) RETURNS bigint LANGUAGE sql AS $$
    WITH asked AS (UPDATE orc.workers SET drain = wanted WHERE name = name_ AND pool <> '' RETURNING key) SELECT count(*) FROM asked
$$;

-- What programs of a run wrote, shipped by the host that has it: `at` is where a piece begins in the file there.
CREATE TABLE orc.output (
    run    bigint NOT NULL REFERENCES orc.runs (key) ON DELETE CASCADE,
    effect text   NOT NULL,
    stream text   NOT NULL,
    at     bigint NOT NULL,
    size   bigint NOT NULL,
    body   bytea  NOT NULL,
    PRIMARY KEY (run, effect, stream, at)
);

-- Keep a piece, if whoever sends it drives the run; one that comes again is there already.
CREATE FUNCTION orc.ship(
    repo_ integer, id_ text, worker_ bigint, epoch_ bigint, effect_ text, stream_ text, at_ bigint, size_ bigint, body_ bytea
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    run_ orc.runs;
BEGIN
    SELECT * INTO run_ FROM orc.runs WHERE repo = repo_ AND id = id_ FOR KEY SHARE;
    IF NOT FOUND OR NOT orc.may_write(run_, worker_, epoch_) THEN
        RETURN false;
    END IF;
    INSERT INTO orc.output (run, effect, stream, at, size, body) VALUES (run_.key, effect_, stream_, at_, size_, body_)
    ON CONFLICT DO NOTHING;
    RETURN true;
END $$;

-- At most so many runs of a repository are driven at once by workers; NULL for as many as there is room for.
ALTER TABLE orc.repositories ADD COLUMN at_once integer CHECK (at_once >= 0);

-- Whether the limit of its repository leaves room for a run, with those that are driven and those before it in its queue.
CREATE FUNCTION orc.has_room(run_ orc.runs, now_us bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT NOT EXISTS (
        SELECT FROM orc.repositories p WHERE p.key = run_.repo AND p.at_once IS NOT NULL AND p.at_once <= (
            SELECT count(*) FROM orc.runs d WHERE d.repo = run_.repo AND d.worker IS NOT NULL AND d.pool <> ''
        ) + (
            SELECT count(*) FROM orc.runs b WHERE b.repo = run_.repo AND b.pool = run_.pool AND b.state IN ('queued', 'resting')
                AND b.ready_us <= now_us AND (-b.priority, b.ready_us, b.key) < (-run_.priority, run_.ready_us, run_.key)
        )
    )
$$;

-- Take runs from the queue of a pool: at most so many, by a worker whose lease is good, and within the limits of repositories. Those
-- with a limit are locked first, so that the next statement sees what others have taken.
CREATE FUNCTION orc.claim(claim_ uuid, worker_ bigint, incarnation_ uuid, pool_ text, room integer)
RETURNS TABLE (repository text, id text, epoch bigint) LANGUAGE plpgsql AS $$
DECLARE
    now_us bigint := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
BEGIN
    PERFORM FROM orc.workers w WHERE w.key = worker_ AND w.incarnation = incarnation_ AND w.lease_until > clock_timestamp() AND NOT w.drain;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF NOT EXISTS (SELECT FROM orc.runs r WHERE r.worker = worker_ AND r.claim = claim_) THEN -- else its answer was lost
        PERFORM FROM orc.repositories p WHERE p.at_once IS NOT NULL AND EXISTS (
            SELECT FROM orc.runs c WHERE c.repo = p.key AND c.pool = pool_ AND c.state IN ('queued', 'resting') AND c.ready_us IS NOT NULL
        ) ORDER BY p.key FOR NO KEY UPDATE;
        UPDATE orc.runs r SET epoch = r.epoch + 1, worker = worker_, claim = claim_, state = 'driven', ready_us = NULL
        WHERE r.key IN (
            SELECT c.key FROM orc.runs c WHERE c.pool = pool_ AND c.state IN ('queued', 'resting') AND c.ready_us IS NOT NULL
                AND c.ready_us <= now_us AND orc.has_room(c, now_us)
            ORDER BY c.priority DESC, c.ready_us, c.key LIMIT room FOR NO KEY UPDATE SKIP LOCKED
        );
    END IF;
    RETURN QUERY
    SELECT p.name, r.id, r.epoch FROM orc.runs r JOIN orc.repositories p ON p.key = r.repo WHERE r.worker = worker_ AND r.claim = claim_;
END $$;

-- Limit the runs of a repository that are driven at once; one that no run was kept of yet is made known.
CREATE FUNCTION orc.set_limit(name_ text, most integer) RETURNS void LANGUAGE sql AS $$
    INSERT INTO orc.repositories (name, at_once) VALUES (name_, most) ON CONFLICT (name) DO UPDATE SET at_once = most
$$;
