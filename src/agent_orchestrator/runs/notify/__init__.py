"""Tells people outside what happens in runs: facts of the journals' tail become messages, which wait in the outbox until told.

    notices.py      rows of the tail → what a person is told
    message.py      notices → one message, in words and as data
    ways.py         a message → the desktop, a program; requests.py: a webhook, Slack, ntfy
    courier.py      one subscriber's post: read on, merge, send in order, try again
    notifier.py     the couriers of a process that drives or serves, a thread each

Nothing here is in the way of a run, nor can it make one fail.
"""
