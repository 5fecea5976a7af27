"""Every bound on what an agent, a file or a person can make us hold, each with its reason."""

from __future__ import annotations

OUTPUT_LIMIT_BYTES = 512 * 1024 * 1024
"""Output of one launch, both streams together: a flooding agent is stopped, not the disk filled."""

REPORT_LIMIT_BYTES = 8 * 1024 * 1024
"""A report is a page, not a payload; a larger one is refused unread."""

LINE_LIMIT_BYTES = 8 * 1024 * 1024
"""A longer line of an agent's stream is skipped and noted."""

TAIL_CHARS = 2_000
"""The end of a program's output that the journal keeps; the whole of it stays in the launch directory."""

ERROR_LINE_CHARS = 300
"""The last line of output quoted in an error."""

SPEC_LIMIT_BYTES = 16 * 1024 * 1024
"""A workflow file of 10,000 steps has about 1 MB."""

SNAPSHOT_LIMIT_BYTES = 256 * 1024 * 1024
"""The state of a run of 10,000 steps has about 5 MB, and less than a tenth of that as it is stored."""

DIFF_CHARS = 20_000
CHANGED_FILES_MAX = 1_000
"""The part of a diff that is kept, for prompts and people; the trees themselves are whole."""

CONFLICT_CHARS = 8_000
CONFLICTS_MAX = 200
"""The part of a merge conflict that is kept, for prompts and people."""

COMMITS_MAX = 200
"""Commits of one branch that are listed, newest kept."""

STOP_GRACE_S = 10.0
"""Between TERM and KILL."""

LINGER_GRACE_S = 2.0
"""Time for processes that an ended agent left behind to finish by themselves."""

RESULT_GRACE_S = 30.0
"""Time for an agent to exit after its result: some hang for hours on children that keep its streams open."""

CHECK_TIMEOUT_S = 3_600.0
"""A check that hangs must not hold a run for ever."""

CHECK_RERUNS_MAX = 1
"""Times that a check which is evidence of nothing is run again before that counts as failed."""

RETRY_BASE_S = 1.0
RETRY_CAP_S = 60.0
"""Backoff between attempts doubles from the base up to the cap."""

SHORTAGE_BASE_S = 0.5
SHORTAGE_CAP_S = 60.0
"""Backoff while the machine is short of processes, descriptors or disk."""

WAIT_RECHECK_S = 30.0
"""Deadlines are wall-clock times and are compared again at least this often: a suspended machine's timers stand still."""

LAUNCHES_KEPT = 1_000
EVIDENCE_KEPT = 100
WARNINGS_KEPT = 100
"""Entries of a unit that are kept in memory, newest last; the journal has all."""

TIMEOUT_LEFT_MIN_S = 1.0
"""An interrupted attempt gets at least this much more time."""

FEEDBACK_ENTRIES_MAX = 8
"""Earlier iterations shown to an agent, newest kept."""

INBOX_POLL_S = 0.1
HUMAN_POLL_S = 0.5
GATE_POLL_S = 0.5
"""Time between two looks at the store's inbox, an answer file and a gate file."""

RATE_BACKOFF_BASE_S = 60.0
RATE_BACKOFF_CAP_S = 3_600.0
"""Time that an account rests whose agent does not say when its rate limit is over: doubling with each refusal."""

RATE_WINDOW_MAX_S = 8 * 86_400.0
"""A rate limit is believed to last no longer than this, whatever an agent says: the longest known is a week."""

RATE_JITTER_S = 30.0
"""Units that were parked together start again within this time, not all at once."""

SHORTAGE_RECHECK_S = 1.0
"""Between two looks whether a store that was away says again who may start."""
DAY_RECHECK_S = 5.0
"""Time between two looks of a unit that waits for what other processes have reserved."""

CLI_IDLE_S = 1_800.0
"""Time that a coding-agent CLI may be silent where nobody says otherwise: commands of its model run without a word, ten
minutes by default, and a long refusal is slept out so, too; a client that hangs says nothing for ever."""

PROGRAM_IDLE_S = 7_200.0
"""The same for any other program: many say nothing before they end."""

NAP_MAX_S = 60.0
"""A rate limit that an agent says it will sleep out for longer than this is parked by us instead: others have to know."""

METER_LOOK_S = 0.1
"""A launch under a budget is looked at this often while it writes: each call to its model has to be seen in time."""

REFUSALS_KEPT = 50
"""Different things that agents of a run were refused: as many are remembered and told."""

CHECKS_TOLD_MAX = 50
"""Of a run's checks, as many are allowed to its agents: a list of tools is a part of a command line."""
