-- The journals of all runs are read in the order of their keys, by readers that come back with the last key they saw. So a key
-- never names another row: the newest row is never deleted, because deleting or renaming a run writes a row of its own (run 0,
-- the run's id as its body). The epoch tells one store from another that stands at the same path later.
CREATE TABLE journal (
    epoch TEXT NOT NULL
) STRICT;

INSERT INTO journal (epoch) VALUES (lower(hex(randomblob(6))));
