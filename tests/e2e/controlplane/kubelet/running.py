"""One container of a pod that runs as processes: started, probed, ended, and started again when it ends by itself."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from demo.machine.processes import ManagedProcess, start
from tests.e2e.controlplane.kubelet.container import Bind, Order
from tests.e2e.controlplane.kubelet.environment import compose, expanded
from tests.e2e.controlplane.kubelet.probes import Prober
from tests.e2e.controlplane.kubelet.status import ContainerState, moment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.e2e.controlplane.kubelet.environment import Surroundings
    from tests.e2e.controlplane.kubelet.spec import Container, Probe

# A kubelet waits 10 s before the first restart and up to 5 min later; a test's time is shorter.
_FIRST_WAIT_SECONDS: Final = 1.0
_LONGEST_WAIT_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a container runs."""

    folder: Path
    volumes: Path
    """The folder with the pod's volumes by name."""
    network_of: int
    address: str


class RunningContainer:
    """A container from its first start to the end of its pod. All methods are called from one thread."""

    def __init__(self, container: Container, place: Place, post: Callable[[Callable[[], None]], None]) -> None:
        """`post` lets the owning thread make a call: probes answer in threads of their own."""
        self.container = container
        self._place = place
        self._post = post
        self._process: ManagedProcess | None = None
        self._probers: list[Prober] = []
        self._restarts = 0
        self._wait = _FIRST_WAIT_SECONDS
        self._start_at: float | None = 0.0
        self._started: str | None = None
        self._kill_at: float | None = None
        self._term_at: float | None = None
        self._exit_code: int | None = None
        self._ready = False
        self._alive = True
        self._through_start_up = False
        self._ending = False

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def state(self) -> ContainerState:
        """Return the container's state as it is to be reported."""
        return ContainerState(
            name=self.container.name,
            image=self.container.image,
            ready=self.is_running and self._ready,
            restarts=self._restarts,
            pid=self._process.pid if self._process else None,
            started=self._started,
            reason="CrashLoopBackOff" if self._exit_code is not None else "ContainerCreating",
            message=self._last_words() if self._exit_code else "",
            exit_code=self._exit_code,
        )

    def advance(self, now: float, unix_now: float, around: Surroundings) -> None:
        """Do what is due: notice an end, restart, continue a termination. Raises RefusedError."""
        if self._process is not None and not self._process.is_running:
            self._note_end(now)
        if self._process is None and not self._ending and self._start_at is not None and now >= self._start_at:
            self._begin(unix_now, around)
        if self._process is not None and not self._alive and self._kill_at is None:
            self._terminate(now, 30.0)
        self._carry_termination_on(now)

    def end(self, now: float, grace: float) -> None:
        """End the container for good: preStop, SIGTERM, and SIGKILL when the grace period is over."""
        self._ending = True
        if self._process is not None and (self._kill_at is None or now + grace < self._kill_at):
            self._terminate(now, grace)

    def kill(self) -> None:
        """End the container at once."""
        self._ending = True
        self._stop_probers()
        if self._process is not None:
            self._process.kill()

    def _terminate(self, now: float, grace: float) -> None:
        self._kill_at = now + grace
        self._term_at = now + min(self.container.stop_delay, grace)

    def _carry_termination_on(self, now: float) -> None:
        if self._process is None:
            return
        if self._term_at is not None and now >= self._term_at:
            self._term_at = None
            self._process.send(signal.SIGTERM)
        if self._kill_at is not None and now >= self._kill_at:
            self._process.kill()

    def _note_end(self, now: float) -> None:
        assert self._process is not None
        # What the program has left behind of its own group ends with it, as with the PID namespace of a container.
        self._process.kill()
        self._exit_code = self._process.return_code
        self._process, self._kill_at, self._term_at = None, None, None
        self._stop_probers()
        if not self._ending:
            self._restarts += 1
            self._start_at = now + self._wait
            self._wait = min(2 * self._wait, _LONGEST_WAIT_SECONDS)

    def _begin(self, unix_now: float, around: Surroundings) -> None:
        order = self._order(around)
        folder = self._place.folder
        (folder / "root").mkdir(parents=True, exist_ok=True)
        (folder / "hosts").write_text(around.hosts())
        path = folder / "order.json"
        path.touch(mode=0o600)
        path.write_bytes(msgspec.json.encode(order))
        command = [sys.executable, "-m", "tests.e2e.controlplane.kubelet.container", str(path)]
        self._process = start(command, log_path=folder / "container.log", name=self.container.name)
        self._started = moment(unix_now)
        self._alive = True
        self._start_probers()

    def _order(self, around: Surroundings) -> Order:
        container = self.container
        environment = compose(container, around)
        return Order(
            network_of=self._place.network_of,
            root=str(self._place.folder / "root"),
            binds=tuple(
                Bind(str(self._place.volumes / mount.volume), mount.path, mount.read_only) for mount in container.mounts
            ),
            hosts=str(self._place.folder / "hosts"),
            files=container.image_files,
            command=tuple(expanded(part, environment) for part in container.command),
            environment=environment,
            working_folder=container.working_folder,
            user=container.identity.user if may_change_users() else None,
            group=container.identity.group,
            groups=container.identity.groups,
            new_privileges=container.new_privileges,
        )

    def _start_probers(self) -> None:
        container = self.container
        self._ready = container.readiness is None and container.startup is None
        self._through_start_up = container.startup is None
        if container.startup:
            self._probe(container.startup, self._start_up_told, at_first=False)
        else:
            self._probe_for_good()

    def _probe_for_good(self) -> None:
        if self.container.readiness:
            self._probe(self.container.readiness, self._readiness_told, at_first=False)
        else:
            self._ready = True
        if self.container.liveness:
            self._probe(self.container.liveness, self._liveness_told, at_first=True)

    def _probe(self, probe: Probe, told: Callable[[bool], None], *, at_first: bool) -> None:
        process = self._process

        def tell(verdict: bool) -> None:  # noqa: FBT001 - the answer itself
            # An answer about a process that has ended meanwhile says nothing of the next.
            self._post(lambda: told(verdict) if process is self._process else None)

        prober = Prober(probe, self._place.address, tell, at_first=at_first)
        self._probers.append(prober)
        prober.start()

    def _stop_probers(self) -> None:
        for prober in self._probers:
            prober.stop()
        self._probers.clear()
        self._ready = False

    def _readiness_told(self, verdict: bool) -> None:  # noqa: FBT001 - the answer itself
        self._ready = verdict

    def _liveness_told(self, verdict: bool) -> None:  # noqa: FBT001 - the answer itself
        self._alive = verdict

    def _start_up_told(self, verdict: bool) -> None:  # noqa: FBT001 - the answer itself
        if not verdict:
            self._alive = False
        elif not self._through_start_up:
            self._through_start_up = True
            self._probers[0].stop()
            self._probe_for_good()

    def _last_words(self) -> str:
        log = self._place.folder / "container.log"
        return log.read_text(errors="replace")[-500:] if log.exists() else ""


def may_change_users() -> bool:
    """Return whether this process may run programs as other users: only the machine's root may."""
    with open("/proc/self/uid_map") as mapped:  # noqa: PTH123 - a line of the kernel's
        return os.geteuid() == 0 and int(mapped.readline().split()[2]) > 1
