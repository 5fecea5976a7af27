"""A person has the session of a unit's agent, in the client's own screen, and hands it back.

Two processes on one session would part ways silently. So the unit is held before the client starts; whoever has the session
holds a lock, and so does the client, for as long as it lives: killed or not, nothing else uses the session meanwhile.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import signal
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, cast

import msgspec

from agent_orchestrator.agents import find_performer
from agent_orchestrator.agents.adapter import Agent, AgentTask, Interactive
from agent_orchestrator.agents.stream import read_transcript
from agent_orchestrator.beneath import list_beneath, open_own
from agent_orchestrator.core.doing import Doing
from agent_orchestrator.core.effects import RunAgent
from agent_orchestrator.core.events import DirectiveRefused, TakenUp
from agent_orchestrator.core.hold import HoldReason
from agent_orchestrator.core.ids import EffectId, launch_folder
from agent_orchestrator.core.inputs import HandBack, TakeOver
from agent_orchestrator.core.takeover import known_units, say_unknown
from agent_orchestrator.engine.clock import boot_id
from agent_orchestrator.engine.journal import decode_events
from agent_orchestrator.engine.kinship import NONCE_VARIABLE
from agent_orchestrator.engine.launches import CannotStart, Order
from agent_orchestrator.engine.perform.prepare import make_environment
from agent_orchestrator.engine.process import folder as folders
from agent_orchestrator.engine.process.shim import chained_nonce
from agent_orchestrator.engine.walls.enclosure import enclose
from agent_orchestrator.engine.walls.places import Surroundings
from agent_orchestrator.errors import Refused, Unavailable
from agent_orchestrator.git.worktree import folder_of
from agent_orchestrator.runs.directives import Sent, new_id, send_and_wait
from agent_orchestrator.runs.follow import Follower, pause
from agent_orchestrator.runs.orchestrator import Orchestrator
from agent_orchestrator.store.port import StoredRun
from agent_orchestrator.systems import find_system

LOCK = ".attach"
LAUNCH = "attach"
"""The launch by which everything that the client starts is known as an agent's: it may not direct runs."""
LOOKS_MAX = 200
"""A stopped agent is wanted again at once, unless it had ended; that is looked for this many times."""


class Session(NamedTuple):
    """The session of a unit's agent, to be taken over."""

    effect: RunAgent
    agent: Interactive
    id: str


def find_session(orchestrator: Orchestrator, run: StoredRun, unit: str) -> Session:
    """Return the session of the agent at work on a unit, or of the one that is held; raises Refused where there is none."""
    folded = orchestrator.fold(run)
    doing: Doing = folded.state.doing
    directive = orchestrator.sign(run, TakeOver(id=new_id(), unit=unit))
    for event in folded.decide(directive, folded.at_us):
        if isinstance(event, DirectiveRefused):
            raise Refused(why=f"Run {run.id}: {event.why}.")
    if not is_held(doing, unit) and (orchestrator.owner(run) is None or not folded.state.lifecycle.running):
        raise Refused(why=f"Run {run.id}: nothing is running it now; `orc resume {run.id}` continues it, then attach.")
    effect = cast(RunAgent, doing.of(unit))
    agent = find_performer(effect.agent.performer)
    if not isinstance(agent, Interactive):
        raise Refused(why=f"Run {run.id}: {unit} is done by {effect.agent.name}, which has no sessions that can be taken over.")
    session = _session_of(orchestrator, doing, effect, agent)
    if session is None:
        way = f"`orc attach {run.id} {unit} --hand-back` lets it begin" if is_held(doing, unit) else "try again in a moment"
        raise Refused(why=f"Run {run.id}: the agent of {unit} has no session of its own yet; {way}.")
    cast(Agent, agent).preflight(effect.agent)
    return Session(effect, agent, session)


def _session_of(orchestrator: Orchestrator, doing: Doing, effect: RunAgent, agent: Interactive) -> str | None:
    """Return the session that the launch named, or that it is to go on with; one of another run is not its own."""
    out = orchestrator.settings.folder / "launches" / launch_folder(effect.id) / folders.OUT
    known = None if effect.session in doing.stale | doing.shared else effect.session
    return read_transcript(out, agent.read).session or known


def is_held(doing: Doing, unit: str) -> bool:
    """Say whether the unit's agent is held because a person has its session."""
    hold = doing.holds.get(unit)
    return hold is not None and hold.why is HoldReason.PERSON


@contextmanager
def reserve(orchestrator: Orchestrator, run: StoredRun, unit: str) -> Iterator[int]:
    """Hold the lock of a unit's session; raises Refused while another process has it."""
    state = orchestrator.fold(run).state
    if unit not in known_units(state):
        raise Refused(why=f"Run {run.id}: {say_unknown(state, unit)}.")
    _refuse_elsewhere(orchestrator, run, unit)
    root = orchestrator.settings.folder
    lock = open_own(root, root / "launches" / run.id / f"{unit}{LOCK}")
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(lock, 200, 0).decode("utf-8", "replace") or "another process"
            why = f"{unit} is attached already, by {owner} or the client that it started; end that first"
            raise Refused(why=f"Run {run.id}: {why}.") from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"process {os.getpid()} on {os.uname().nodename}".encode(), 0)
        try:
            yield lock
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)  # What the client left in the background may have the descriptor, not the lock.
    finally:
        os.close(lock)


def _refuse_elsewhere(orchestrator: Orchestrator, run: StoredRun, unit: str) -> None:
    """Raise for a unit of a run that workers drive elsewhere, with its host and the command to give there."""
    if not run.context.remote or orchestrator.has_home(run):
        return
    owner, host = orchestrator.owner(run), find_last_host(orchestrator, run)
    where = f"is driven by {owner}" if owner is not None else f"was driven last on {host}" if host else "was not driven yet"
    if host or owner is not None:
        way = f"on that host: orc attach {run.id} {unit} --repo {run.context.home} --store {orchestrator.address}"
        raise Refused(why=f"Run {run.id} {where}, and sessions of its agents are there alone; take {unit} over {way}")
    raise Refused(why=f"Run {run.id} {where}: there is no session to take over yet.")


def find_last_host(orchestrator: Orchestrator, run: StoredRun) -> str:
    """Return the host that took a run up last; '' where none did."""
    system, host = find_system(run.system), ""
    for _, _, body in orchestrator.store.rows(run.id):
        for event in decode_events(system, body):
            host = event.host if isinstance(event, TakenUp) else host
    return host


def is_attached(orchestrator: Orchestrator, run: StoredRun) -> bool:
    """Say whether a person's client has a session of the run now."""
    root = orchestrator.settings.folder
    launches = root / "launches" / run.id
    for name in (one for one in list_beneath(root, launches) if one.endswith(LOCK)):
        with contextlib.suppress(OSError):
            descriptor = open_own(root, launches / name, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            finally:
                os.close(descriptor)
    return False


def take_over(orchestrator: Orchestrator, run: StoredRun, unit: str) -> Session:
    """Stop the unit's agent and hold the unit; return the session once nothing else uses it. Raises Refused if it had ended."""
    find_session(orchestrator, run, unit)
    sent = send_and_wait(orchestrator, run, TakeOver(id=new_id(), unit=unit))
    follower, looks = Follower(orchestrator, run), 0
    while not is_held(follower.state.doing, unit):
        follower.read()
        doing, life = follower.state.doing, follower.state.lifecycle
        waits = any(directive == sent.directive for directive, _ in orchestrator.store.inbox(run.id))
        if orchestrator.owner(run) is None:
            follower.read()
            if not is_held(follower.state.doing, unit):
                raise Refused(why=f"Run {run.id}: nothing is running it now; `orc resume {run.id}` continues it, then attach.")
        elif not waits and not isinstance(doing.of(unit), RunAgent):
            looks += 1
            if doing.of(unit) is not None or not life.running or looks > LOOKS_MAX:
                hand_back(orchestrator, run, unit)
                raise Refused(why=f"Run {run.id}: the agent of {unit} ended before it could be taken over.")
        pause()
    try:
        return find_session(orchestrator, run, unit)
    except Refused:  # Another agent of the unit is to begin: there is nothing to take over.
        hand_back(orchestrator, run, unit)
        raise


def hand_back(orchestrator: Orchestrator, run: StoredRun, unit: str, *, done: bool = False) -> Sent:
    """Let the unit's agent go on, or only report on what is `done`, now or when the run is resumed.

    The caller has the lock. Raises Refused.
    """
    sent = send_and_wait(orchestrator, run, HandBack(id=new_id(), unit=unit, done=done))
    folders.remove_mark(_folder(orchestrator, run, unit), folders.LOCK)  # The mark of a client that was killed.
    return sent


def _folder(orchestrator: Orchestrator, run: StoredRun, unit: str) -> Path:
    return orchestrator.settings.folder / "launches" / run.id / f"{unit}~{LAUNCH}"


def plan_client(orchestrator: Orchestrator, run: StoredRun, session: Session) -> Order:
    """Return the client as it is to be started: in the unit's tree, with the agent's environment, behind the wall of the run."""
    settings, context, effect = orchestrator.settings, run.context, session.effect
    home, folder = Path(context.home), _folder(orchestrator, run, effect.unit)
    task = AgentTask(
        effect=msgspec.structs.replace(effect, session=session.id),
        run=run.id,
        home=home,
        workdir=Path(context.workdir) if effect.tree is None else folder_of(home, context.run, effect.tree),
        launch_dir=folder,
        inherited_env=make_environment(effect, session.agent, context.pass_env, settings.child_env),
        sandboxed=context.sandbox is not None,
    )
    plan = session.agent.plan_takeover(task)
    name = EffectId(f"{run.id}/{effect.unit}/{LAUNCH}")
    order = Order(effect=name, argv=plan.argv, env=plan.env, cwd=task.workdir, stdin=None)
    if context.sandbox is None:
        return order
    more = (task.artifacts_dir, *plan.keeps)
    around = Surroundings(repo=home, store=settings.folder, tree=order.cwd, launch=folder, env=order.env, more=more)
    try:
        return enclose(order, context.sandbox, around, online=context.sandbox.network != "off", passed=context.pass_env)
    except CannotStart as error:
        raise Unavailable(detail=f"{effect.agent.name} cannot be started: {error}.") from None


def run_client(orchestrator: Orchestrator, run: StoredRun, order: Order, lock: int) -> int:
    """Let the person use the client in this terminal until it ends; returns its exit code. It inherits the lock."""
    clock, nonce = orchestrator.clock, secrets.token_hex(16)
    birth = folders.Birth(nonce=nonce, boot=boot_id(), started_us=clock.now_us(), started_s=clock.monotonic_s())
    folder = orchestrator.settings.folder / "launches" / launch_folder(order.effect)
    folders.remove_mark(folder, folders.LOCK)  # The mark of one that was killed.
    folders.keep_birth(folder, birth)
    env = {**order.env, NONCE_VARIABLE: chained_nonce(order.env, nonce)}
    modes = termios.tcgetattr(0)
    # Ctrl-C is the client's. A handler, because what is ignored here would be ignored there, too.
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGQUIT)}
    try:
        code = subprocess.run(order.argv, cwd=order.cwd, env=env, pass_fds=(lock,), check=False).returncode
    except OSError as error:
        raise Unavailable(detail=f"{order.argv[0]} cannot be started in {order.cwd}: {error.strerror}.") from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        termios.tcsetattr(0, termios.TCSADRAIN, modes)
        folders.remove_mark(folder, folders.LOCK)
    return code if code >= 0 else 128 - code
