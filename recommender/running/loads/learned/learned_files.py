"""Verdicts on targets in files beside the histories, so that a restart continues with the chosen models.

A file is one JSON document, which is replaced as a whole. A file that is damaged, old or of another configuration is
ignored. Fits are not stored: those of trees only have the library's own format, which may run code when it is read, and
they are made again from the restored history in seconds.
"""

from __future__ import annotations

import hashlib
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from adapter.foundation.files.file_contents import read_regular
from adapter.foundation.files.replaced_file import replace_file
from adapter.foundation.objects.decoders import decoder_of
from adapter.foundation.service.runtime.logs import StateLog, fields
from recommender.decisions.record import TargetReference
from recommender.kinds.predictive.choice.blend import Blend, Part
from recommender.kinds.predictive.history import DAY_SECONDS
from recommender.kinds.predictive.learning import SeriesVerdict
from recommender.kinds.predictive.simulation.bill import Bill
from recommender.running.memory.store import stored_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from recommender.running.loads.histories.target_loads import Target
    from recommender.running.loads.learned.learned_models import Learned
    from recommender.running.loads.needs import LoadNeed

_log = logging.getLogger(__name__)

VERSION: Final = 1
OLDEST_SECONDS: Final = 2 * DAY_SECONDS
"""Older verdicts are not used, since new ones are found soon."""
_LARGEST_BYTES: Final = 256 << 20
_Ratio = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
_Text = Annotated[str, msgspec.Meta(max_length=2_000)]


class _StoredPart(msgspec.Struct, forbid_unknown_fields=True, frozen=True, array_like=True):
    model: _Name
    weight: _Share
    scale: _Ratio


class _StoredVerdict(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    target: tuple[str, str, str, str] | None
    model: _Name
    reason: _Text
    headroom: _Ratio
    parts: Annotated[tuple[_StoredPart, ...], msgspec.Meta(max_length=32)] = ()
    cost_as_headroom: _Ratio | None = None
    cost_above_load: float | None = None
    shortage: dict[_Name, float | None] = {}
    last_day: _Text = ""


class _Stored(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    version: int
    learned_for: str
    """A digest of the load that was learned from."""
    time: float
    """Seconds since the Unix epoch."""
    verdicts: tuple[_StoredVerdict, ...]


_STORED = decoder_of(_Stored)


class LearnedFiles:
    """The verdicts under a folder. `restore` and `save` are for one thread at a time."""

    def __init__(self, folder: Path, now: Callable[[], float]) -> None:
        """`now` returns the seconds since the Unix epoch."""
        self._folder = folder
        self._now = now
        self._states = StateLog(_log)

    def restore(self, need: LoadNeed) -> Mapping[Target, SeriesVerdict]:
        """Return the verdicts of a recommendation by target; none if there are no usable ones."""
        path = self._path(need.name)
        try:
            stored = _STORED.decode(read_regular(path, _LARGEST_BYTES))
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError, UnicodeError, RecursionError) as error:
            problem = error.strerror or str(error) if isinstance(error, OSError) else str(error)
            about = fields(recommendation=need.name, file=str(path), problem=problem)
            _log.warning("stored choices of models are not used: models are compared anew", extra=about)
            return {}
        age = self._now() - stored.time
        if stored.version != VERSION or stored.learned_for != _identity_of(need) or not 0 <= age <= OLDEST_SECONDS:
            return {}
        return dict(_verdict_of(each) for each in stored.verdicts)

    def save(self, need: LoadNeed, learned: Learned) -> None:
        """Write the verdicts of a recommendation. A failure is logged once."""
        path = self._path(need.name)
        stored = _Stored(
            VERSION, _identity_of(need), self._now(), tuple(_stored_verdict(*each) for each in learned.verdicts.items())
        )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, msgspec.json.encode(stored))
        except OSError as error:
            message = f"the choices of models cannot be written to {self._folder}: {error.strerror}"
            self._states.failed("write", f"{message}: a restart compares the models anew", level=logging.WARNING)
        else:
            self._states.recovered("write", "the choices of models are written again")

    def remove(self, name: str) -> None:
        """Delete the file of a recommendation that will not come back. A failure only wastes space."""
        with suppress(OSError):
            self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / f"{stored_name(name)}.verdicts.json"


def _identity_of(need: LoadNeed) -> str:
    return hashlib.blake2b(repr(need.learned_for).encode(), digest_size=16).hexdigest()


def _stored_verdict(target: Target, verdict: SeriesVerdict) -> _StoredVerdict:
    bill = verdict.bill
    return _StoredVerdict(
        target=None if target is None else (target.api_version, target.kind, target.namespace, target.name),
        model=verdict.model,
        reason=verdict.reason,
        headroom=verdict.blend.headroom_ratio,
        parts=tuple(_StoredPart(str(part.model), min(1.0, part.weight), part.scale) for part in verdict.blend.parts),
        cost_as_headroom=None if bill is None else bill.as_headroom_ratio,
        cost_above_load=None if bill is None else bill.above_load_ratio,
        shortage=dict(verdict.shortage_versus_headroom),
        last_day=verdict.last_day,
    )


def _verdict_of(stored: _StoredVerdict) -> tuple[Target, SeriesVerdict]:
    bill = None if stored.cost_as_headroom is None else Bill(stored.cost_as_headroom, stored.cost_above_load)
    parts = tuple(Part(each.model, each.weight, each.scale) for each in stored.parts)
    verdict = SeriesVerdict(
        stored.model, stored.reason, Blend(stored.headroom, parts), bill, stored.shortage, stored.last_day
    )
    return None if stored.target is None else TargetReference(*stored.target), verdict
