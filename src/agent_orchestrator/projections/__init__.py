"""Print-outs: the state files of the seeds. Written whole, recognised by identity, never read as truth."""
