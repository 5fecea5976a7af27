#!/usr/bin/env bash
# The demonstration behind `make demo`: a real package, a real failing test, real programs as agents, and no model. The first
# review sends the work back, the orchestrator is killed with -9 in the middle, a person approves. Every claim is checked.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
pause_s="${ORC_DEMO_PAUSE_S:-1}" # between the scenes, for the reader
wait_s=60                        # for anything that has to happen

bold="" dim="" plain=""
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'; fi

scene() {
  sleep "$pause_s"
  printf '\n%s%s%s\n\n' "$bold" "$1" "$plain"
}
say() { printf '%s\n' "$1"; }
fail() {
  printf '\nThe demonstration went wrong: %s\nEverything is in %s\n' "$1" "${scratch:-nothing yet}" >&2
  exit 1
}
command -v orc >/dev/null || fail "orc is not on the PATH; say: make demo"
python3 -c 'import pytest' 2>/dev/null || fail "python3 has no pytest; say: make demo"

# A command as one would type it.
typed() {
  local word line=""
  for word in "$@"; do
    case "$word" in *[!A-Za-z0-9_./=:-]*) word="'$word'" ;; esac
    line="$line $word"
  done
  printf '%s$%s%s' "$bold" "$line" "$plain"
}
show() {
  typed "$@"
  printf '\n'
  "$@"
}

# The screen of another terminal: every line is shown here too, and kept so that we can wait for it.
mirror() {
  local line
  while IFS= read -r line; do
    printf '%s  1 |%s %s\n' "$dim" "$plain" "$line"
    printf '%s\n' "$line" >>"$screen"
  done
}
in_terminal_1() {
  typed "$@"
  printf '        %s(in terminal 1)%s\n' "$dim" "$plain"
  : >"$screen"
  "$@" </dev/null > >(mirror) 2>&1 &
  driver=$!
}
wait_until() { # what, command …
  local what="$1" until_s=$((SECONDS + wait_s))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$until_s" ] || fail "waited $wait_s s in vain until $what"
    sleep 0.1
  done
}
says() { # text, command …: not a pipe, whose first half would be cut off by a quick second
  local text="$1"
  shift
  case "$("$@")" in *"$text"*) ;; *) return 1 ;; esac
}
on_screen() { grep -qF -- "$1" "$screen"; }
count_facts() { orc history demo | grep -cF -- "$1" || true; }
count_launches() { grep -c "^$1 " "$launches" || true; }

# Facts are read from the state file, which is valid at every moment.
state() { python3 -c 'import json, sys; print(eval(sys.argv[2], {"state": json.load(open(sys.argv[1]))}))' "$state_file" "$1"; }
expect() { # what we claim, what is, what ought to be
  [ "$2" = "$3" ] || fail "$1: expected '$3', found '$2'"
  printf '%s  checked: %s%s\n' "$dim" "$1" "$plain"
}

driver="" ended=""
clean_up() {
  local code=$?
  trap - EXIT INT TERM
  if [ -n "$driver" ] && [ -z "$ended" ]; then
    kill -TERM "$driver" 2>/dev/null || true
    wait "$driver" 2>/dev/null || true
    orc abort demo --reason "the demonstration was interrupted" >/dev/null 2>&1 || true
  fi
  exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

scratch="$(mktemp -d "${TMPDIR:-/tmp}/orc-demo.XXXXXX")"
launches="$scratch/launches.log" # written by the agents themselves
screen="$scratch/terminal-1.txt"
state_file="$scratch/project/.agents/runs/demo/run_state.json"
cp -R "$here/project" "$here/agents" "$scratch"
cd "$scratch/project"

scene "1. A small package with a failing test"
git init --quiet
git add --all
git -c user.name=Demo -c user.email=demo@example.com -c commit.gpgsign=false commit --quiet --message "A package with a bug"
show cd "$scratch/project"
code=0
show python3 -m pytest -q --no-header --tb=no || code=$?
expect "a test fails" "$code" 1
say ""
say "The workflow: plan, code, review (its gate: pytest, run by the orchestrator), approval (by a person)."
say "The agents are four small programs in $scratch/agents; they edit and test like any other."

scene "2. Start the workflow"
in_terminal_1 orc run --workflow workflow.yaml --run-id demo --agent-command 'python3 ../agents'
wait_until "the coder is at work" grep -q "^code iteration 0" "$launches"
coder="$(sed -n 's/^code iteration 0 process //p' "$launches")"
wait_until "the coder thinks" says "thought 2" orc logs demo code
show orc logs demo code

scene "3. kill -9 the orchestrator while the coder works"
show kill -9 "$driver"
wait "$driver" 2>/dev/null || true
kill -0 "$driver" 2>/dev/null && fail "the orchestrator lives"
say ""
show orc status demo
says "nothing is running it" orc status demo || fail "orc status ought to say that nothing is running it"
say ""
say "Nothing is running it now. The coder, process $coder, has not noticed and thinks on:"
say ""
wait_until "the coder thinks on" says "thought 6" orc logs demo code
show orc logs demo code
expect "the coder, process $coder, lives" "$(kill -0 "$coder" && echo yes)" yes

scene "4. Resume: the coder is adopted, not started again"
in_terminal_1 orc resume demo
wait_until "terminal 1 says which run it drives" on_screen "run demo"
wait_until "somebody drives the run again" says "running in process" orc status demo
show orc status demo
expect "the coder, process $coder, still lives" "$(kill -0 "$coder" && echo yes)" yes
expect "the coder was started once, by its own log" "$(count_launches 'code iteration 0')" 1

scene "5. The coder says that it is done. The review's gate knows better and sends it back"
touch "$scratch/enough-thought"
wait_until "the gate failed" on_screen "loops back to code"
wait_until "the second round has ended" on_screen "approval  waiting for approval"
wait_until "the instructions are there" on_screen "echo '{\"approved\": true}'"
say ""
show orc show demo review
say ""
expect "the first review failed its check" "$(count_facts 'check failed with exit code 1')" 1
expect "it looped back" "$(count_facts 'loops back to code')" 1
expect "the second review passed" "$(count_facts 'check passed')" 1
expect "the coder was started once in each of two iterations, by its own log" \
  "$(count_launches 'code iteration 0')+$(count_launches 'code iteration 1')" 1+1

scene "6. A person approves, from another terminal"
expect "the run waits for a person" "$(state 'state["steps"]["approval"]["status"]')" WAITING_ON_HUMAN
show git --no-pager diff --unified=0
show orc approve demo --comments "ship it"
code=0
wait "$driver" || code=$?
ended=yes
wait_until "terminal 1 shows the end" on_screen "state: "
expect "orc resume ended with exit code 0" "$code" 0
expect "every step is completed" "$(state '{step["status"] for step in state["steps"].values()}')" "{'COMPLETED'}"
expect "code is in its second iteration" "$(state 'state["steps"]["code"]["iteration_count"]')" 1
expect "six starts in all: code and review twice, plan and approval once" "$(count_launches '.*')" 6
show python3 -m pytest -q --no-header || fail "the tests ought to pass"

scene "7. The state file"
show cat .agents/runs/demo/run_state.json

scene "What to try next"
cat <<NEXT
  export PATH="$(dirname "$(command -v orc)"):\$PATH"
  cd $scratch/project
  orc history demo             every fact of the run, in order
  orc logs demo                what the agents wrote
  orc show demo code --json    launches, feedback, evidence
  orc list                     all runs of this repository
  orc web --open               the same on a page in the browser: the graph, the diff, every moment of the past
  orc run --workflow workflow.yaml --run-id demo --agent-command 'python3 ../agents' --start-at-step review
                               the review and what follows once more

The folder $scratch stays; delete it when you have seen enough.
NEXT
say ""
say "The demonstration is over: one kill -9, no work lost, nothing done twice."
if [ "${WEB:-0}" = 1 ]; then
  say ""
  say "The page of the run, until Ctrl-C:"
  exec orc web --open
fi
