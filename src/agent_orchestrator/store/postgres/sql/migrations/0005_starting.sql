-- Agents that start with an append are counted by it: one round trip less per step than a call of orc.start_work.

-- There are as many rows as agents at work: nobody needs an index to count them, and each start would write to it.
DROP INDEX orc.at_work_by_account;

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

-- As before, and with launches of the parts, in the order of these: `launch_parts` has the number of the part of each, `launches` its
-- effect. One without an account is over: nothing is set aside for it, and it works for nobody. One with an account starts, and is
-- counted, unless that account has a limit: then the answer is -3, done but not counted, and it is asked for behind the lock of its
-- account. Statements about one row each: there is hardly ever more than one, and to read a list as a table costs more than the rest.
DROP FUNCTION orc.append(
    uuid, integer, bigint, text[], bigint[], bigint[], bigint[], bytea[], bytea[], boolean[], json[]
);

CREATE FUNCTION orc.append(
    batch_ uuid, repo_ integer, worker_ bigint, runs_ text[], epochs bigint[], expected bigint[], times bigint[], bodies bytea[],
    summaries bytea[], ends boolean[], mores json[], launch_parts bigint[], launches text[], launch_accounts text[]
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    answers bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(runs_)]);
    run_ orc.runs;
    key_ bigint;
    launch bigint := 1;
BEGIN
    PERFORM orc.enter();
    FOR i IN 1 .. cardinality(runs_) LOOP
        WHILE launch_parts[launch] < i LOOP -- Those of a part that was refused.
            launch := launch + 1;
        END LOOP;
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
                IF launch_parts[launch] = i THEN
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
            PERFORM orc.append_more(key_, repo_, times[i], mores[i]);
        END IF;
        WHILE launch_parts[launch] = i LOOP
            IF launch_accounts[launch] IS NULL THEN
                DELETE FROM orc.reservations WHERE repo = repo_ AND effect = launches[launch];
                DELETE FROM orc.at_work WHERE run = key_ AND effect = launches[launch];
            ELSIF EXISTS (SELECT FROM orc.accounts WHERE name = launch_accounts[launch]) THEN
                answers[i] := -3;
            ELSE
                INSERT INTO orc.at_work (run, effect, account, epoch)
                VALUES (key_, launches[launch], launch_accounts[launch], epochs[i])
                ON CONFLICT (run, effect) DO UPDATE SET account = excluded.account, epoch = excluded.epoch;
            END IF;
            launch := launch + 1;
        END LOOP;
    END LOOP;
    RETURN answers;
END $$;
