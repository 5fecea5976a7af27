"""`state/SCHEMA.md`: what the files of the state directory are, for whoever opens it."""

from __future__ import annotations

PAGE = """\
# The state directory

Records of the beads that were dispatched from this workspace. Every file is JSON, written whole, and satisfies its schema.

    state/
    ├── SCHEMA.md                        this page
    ├── schemas/run.schema.json          what a run record is
    ├── schemas/result.schema.json       what a result record is
    ├── runs/<bead>.json                 the newest attempt of a bead
    ├── results/<bead>.json              how the newest attempt ended; none while it runs
    └── attempts/<bead>.<n>.run.json     every attempt that has ended, never rewritten,
        attempts/<bead>.<n>.result.json  and how it ended

`runs/<bead>-verify.json` and `results/<bead>-verify.json`, where a tool leaves them, belong to the bead and are no records.

A run and its result have the same `bead` and `attempt` and agree in status, times and exit code.

## Run records

| field | type | |
|---|---|---|
| `schema_version` | integer | 1 |
| `bead` | string | the bead |
| `agent`, `model` | string | who works; the model is `default` when none was named |
| `repo` | string | absolute path of the repository |
| `prompt`, `prompt_full`, `prompt_hash` | string | the instruction: 200 characters of it, all of it, its SHA-256 |
| `started_at`, `finished_at` | string | ISO 8601, UTC |
| `duration_seconds` | integer | the difference of the two |
| `status` | string | `running`, `done`, `failed`, `timeout` |
| `attempt`, `max_retries` | integer | which attempt, and how many there may be in total |
| `session_name` | string | `agent-<bead>` |
| `result_file` | string | where the result is written |
| `exit_code` | integer or null | 124 after a time-out, null when there is none |
| `output_summary` | string | the last 500 characters of output |
| `failure_reason` | string | see below; null unless it failed or timed out |
| `template_name` | string | null when no template was used |
| `verification` | any | evidence in a record of another tool, kept as it was |

What need not be there may be null. Until an attempt ends, `finished_at`, `duration_seconds`, `exit_code`, `output_summary` and
`failure_reason` are.

## Result records

`schema_version`, `bead`, `agent`, `status`, `reason` (never empty), `started_at`, `finished_at`, `duration_seconds`, `attempt`,
`max_retries`, `will_retry`, `exit_code`, `session_name`, `output_summary`.

With `will_retry` another attempt follows; its start removes the result, so that run and result always agree.

## Failure reasons

`exit-N`, `signal-N`, `timeout-Ns`, `verification-failed`, `reported-failed`, `report-invalid`, `output-limit`, `launch-failed`,
`lost`, `aborted`, `budget-exhausted`, `disk-full`.

## Commands

    scripts/dispatch.sh BEAD REPO AGENT[:MODEL] PROMPT [TEMPLATE]
    scripts/validate-state.sh --runs | --results | --all [PATH] [--fix]
    scripts/analyze-runs.sh [--json] [--since DATE]
"""
