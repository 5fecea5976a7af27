-- Agents that start with an append are counted by it: one round trip less per step than a call of orc.start_work. Statements about one
-- row each, for there is hardly ever more than one: reading a list as a table costs more than what is done with it.

-- Each start would look for its run once more, only so that a run which is deleted takes its agents with it.
ALTER TABLE orc.at_work DROP CONSTRAINT at_work_run_fkey;

CREATE OR REPLACE FUNCTION orc.delete_run(repo_ integer, key_ bigint) RETURNS void LANGUAGE plpgsql AS $$
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
        DELETE FROM orc.at_work WHERE run = key_;
        DELETE FROM orc.printed WHERE run = key_;
        DELETE FROM orc.specs WHERE run = key_;
        PERFORM orc.say_change(repo_, id_);
    END IF;
END $$;

-- Launches that are over have nothing set aside, and work for no account. Those that start are counted, where their account has no
-- limit; true if all of them are. The others have to be asked for one by one, behind the lock of their account.
CREATE FUNCTION orc.append_launches(run_ bigint, repo_ integer, epoch_ bigint, over json, starting json)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    effect_ text;
    account_ text;
    counted boolean := true;
BEGIN
    FOR i IN 0 .. coalesce(json_array_length(over), 0) - 1 LOOP
        effect_ := over ->> i;
        DELETE FROM orc.reservations WHERE repo = repo_ AND effect = effect_;
        DELETE FROM orc.at_work WHERE run = run_ AND effect = effect_;
    END LOOP;
    FOR i IN 0 .. coalesce(json_array_length(starting), 0) - 1 LOOP
        effect_ := starting -> i ->> 'effect';
        account_ := starting -> i ->> 'account';
        IF EXISTS (SELECT FROM orc.accounts WHERE name = account_) THEN
            counted := false;
        ELSE
            INSERT INTO orc.at_work (run, effect, account, epoch) VALUES (run_, effect_, account_, epoch_)
            ON CONFLICT (run, effect) DO UPDATE SET account = excluded.account, epoch = excluded.epoch;
        END IF;
    END LOOP;
    RETURN counted;
END $$;

-- The parts of an append that are rarely there.
CREATE OR REPLACE FUNCTION orc.append_more(run_ bigint, repo_ integer, at_us_ bigint, more json) RETURNS void LANGUAGE plpgsql AS $$
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

-- As before, and -3 for done, but for agents that are not counted.
CREATE OR REPLACE FUNCTION orc.append(
    batch_ uuid, repo_ integer, worker_ bigint, runs_ text[], epochs bigint[], expected bigint[], times bigint[], bodies bytea[],
    summaries bytea[], ends boolean[], mores json[]
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    answers bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(runs_)]);
    run_ orc.runs;
    key_ bigint;
    over json;
    starting json;
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
                -- It was written, and its answer lost.
                IF mores[i] -> 'starting' IS NOT NULL THEN
                    answers[i] := -3;
                END IF;
                CONTINUE;
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
            over := mores[i] -> 'over';
            starting := mores[i] -> 'starting';
            IF (over IS NOT NULL OR starting IS NOT NULL)
                AND NOT orc.append_launches(key_, repo_, epochs[i], over, starting) THEN
                answers[i] := -3;
            END IF;
            PERFORM orc.append_more(key_, repo_, times[i], mores[i]);
        END IF;
    END LOOP;
    RETURN answers;
END $$;
