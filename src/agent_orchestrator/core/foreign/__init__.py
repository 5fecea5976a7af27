"""Files that another tool wrote, read for all systems in one way: any spelling of a field, and an account of each.

`fields` finds a field under its names, `values` reads what stands in it, `account` keeps what became of it, `records` reads
entries that are ours by shape. For whole files that are taken over; an edit of our own print-outs is read strictly, by its
system.
"""
