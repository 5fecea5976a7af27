-- Runs that are as usable from any host as from their own: who delivers their notifications, and how much of an account works at once.

-- The process that tells a subscriber of a repository: one at a time over all hosts, for as long as it says so again.
CREATE TABLE orc.couriers (
    repo   integer     NOT NULL REFERENCES orc.repositories (key),
    reader text        NOT NULL,
    holder uuid        NOT NULL,
    until  timestamptz NOT NULL,
    PRIMARY KEY (repo, reader)
);

-- Be the one who tells a subscriber, for so long from now; false while another one is. For no time at all, let others.
CREATE FUNCTION orc.carry(repo_ integer, reader_ text, holder_ uuid, for_s double precision) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO orc.couriers AS known (repo, reader, holder, until)
    VALUES (repo_, reader_, holder_, clock_timestamp() + make_interval(secs => for_s))
    ON CONFLICT (repo, reader) DO UPDATE SET holder = excluded.holder, until = excluded.until
    WHERE known.holder = excluded.holder OR known.until <= clock_timestamp();
    RETURN FOUND;
END $$;

-- At most so many agents of an account work at once, on all hosts together and whatever their repository.
CREATE TABLE orc.accounts (
    name    text    PRIMARY KEY,
    at_once integer NOT NULL CHECK (at_once >= 0)
);

-- The agents at work. One counts while the run is driven under the epoch that it was started or adopted by, and its driver's lease
-- is good: whoever dies need not say so.
CREATE TABLE orc.at_work (
    run     bigint NOT NULL REFERENCES orc.runs (key) ON DELETE CASCADE,
    effect  text   NOT NULL,
    account text   NOT NULL,
    epoch   bigint NOT NULL,
    PRIMARY KEY (run, effect)
);

CREATE INDEX at_work_by_account ON orc.at_work (account);

CREATE FUNCTION orc.count_at_work(account_ text, but_run bigint, but_effect text) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT count(*) FROM orc.at_work a
        JOIN orc.runs r ON r.key = a.run AND r.epoch = a.epoch
        JOIN orc.workers w ON w.key = r.worker AND w.lease_until > clock_timestamp()
    WHERE a.account = account_ AND NOT (a.run = but_run AND a.effect = but_effect)
$$;

-- Let an agent of an account start, if there is room for it; one that is `adopted` works already, and is only counted. NULL if fenced.
-- A limited account is locked first, so that the next statement counts those whom others let start. One without a limit is only counted for
-- people, and for the limit that somebody may set: that need not be on the disk before the agent starts.
CREATE FUNCTION orc.start_work(
    repo_ integer, id_ text, worker_ bigint, epoch_ bigint, effect_ text, account_ text, adopted boolean
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    run_ orc.runs;
    most integer;
BEGIN
    SELECT * INTO run_ FROM orc.runs WHERE repo = repo_ AND id = id_ FOR KEY SHARE;
    IF NOT FOUND OR NOT orc.may_write(run_, worker_, epoch_) THEN
        RETURN NULL;
    END IF;
    SELECT at_once INTO most FROM orc.accounts WHERE name = account_ FOR NO KEY UPDATE;
    IF most IS NULL THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    ELSIF NOT adopted AND orc.count_at_work(account_, run_.key, effect_) >= most THEN
        RETURN false;
    END IF;
    INSERT INTO orc.at_work (run, effect, account, epoch) VALUES (run_.key, effect_, account_, epoch_)
    ON CONFLICT (run, effect) DO UPDATE SET account = excluded.account, epoch = excluded.epoch;
    RETURN true;
END $$;

CREATE FUNCTION orc.end_work(repo_ integer, id_ text, effect_ text) RETURNS void LANGUAGE sql AS $$
    DELETE FROM orc.at_work a USING orc.runs r WHERE r.repo = repo_ AND r.id = id_ AND a.run = r.key AND a.effect = effect_
$$;

-- Limit an account; NULL for no limit.
CREATE FUNCTION orc.limit_account(name_ text, most integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF most IS NULL THEN
        DELETE FROM orc.accounts WHERE name = name_;
    ELSE
        INSERT INTO orc.accounts (name, at_once) VALUES (name_, most) ON CONFLICT (name) DO UPDATE SET at_once = most;
    END IF;
END $$;
