"""Stores verdicts on targets in files beside the histories, so that a restart keeps what was chosen and proven.

A file is one JSON document, which is replaced as a whole. A file that is damaged, old, dated in the future or of
another configuration is not used, and the log says so. If only a proof is damaged, its verdict is still used.

Fits are not stored. Fits of trees can be stored only in the format of their library, which may run code when it is
read, and all fits are made again from the restored history in seconds.
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
from recommender.kinds.predictive.choice.series_proof import SeriesProof
from recommender.kinds.predictive.history import DAY_SECONDS
from recommender.kinds.predictive.learning import SeriesVerdict
from recommender.kinds.predictive.simulation.bill import Bill
from recommender.running.memory.store_protocol import stored_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from recommender.running.loads.histories.target_loads import Target
    from recommender.running.loads.learned.model_choices import Learned
    from recommender.running.loads.load_needs import LoadNeed

_log = logging.getLogger(__name__)

VERSION: Final = 2
_WITHOUT_PROOFS: Final = 1
"""Files of this version are read, and are written again in the current version."""
OLDEST_SECONDS: Final = 7 * DAY_SECONDS
"""An older file is not used: it was written before the week that a record covers."""
_LARGEST_BYTES: Final = 256 << 20
_Ratio = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
_Text = Annotated[str, msgspec.Meta(max_length=2_000)]


class _StoredPart(msgspec.Struct, forbid_unknown_fields=True, frozen=True, array_like=True):
    model: _Name
    weight: _Share
    scale: _Ratio


_NO_PROOF: Final = msgspec.Raw()


class _StoredProof(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    names: Annotated[tuple[_Name, ...], msgspec.Meta(max_length=32)]
    values: Annotated[bytes, msgspec.Meta(max_length=2_000)]
    """The values of the proof, which are base64 text in the file."""


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
    proof: msgspec.Raw = _NO_PROOF
    """The proof, which is decoded separately, so that the verdict can be used even if the proof is damaged."""


class _Stored(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    version: int
    learned_for: str
    """A digest of the load that was learned from."""
    time: float
    """Seconds since the Unix epoch."""
    verdicts: tuple[_StoredVerdict, ...]


_STORED = decoder_of(_Stored)
_STORED_PROOF = decoder_of(_StoredProof)


class LearnedFiles:
    """Stores verdicts in the files of a folder. `restore` and `save` are for one thread at a time."""

    def __init__(self, folder: Path, now: Callable[[], float]) -> None:
        """`now` returns the Unix seconds."""
        self._folder = folder
        self._now = now
        self._states = StateLog(_log)

    def restore(self, need: LoadNeed) -> Mapping[Target, SeriesVerdict]:
        """Return the verdicts of a recommendation by target; none if there are no usable ones."""
        try:
            stored = _STORED.decode(read_regular(self._path(need.name), _LARGEST_BYTES))
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError, UnicodeError, RecursionError) as error:
            problem = error.strerror or str(error) if isinstance(error, OSError) else str(error)
            return self._log_unused_file(need, problem)
        if problem := _problem_of(stored, need, self._now()):
            return self._log_unused_file(need, problem)
        found = dict(_verdict_of(each) for each in stored.verdicts)
        if lost := sum(bool(bytes(each.proof)) for each in stored.verdicts) - sum(
            verdict.proof is not None for verdict in found.values()
        ):
            message = (
                "stored proofs of models are damaged or of an earlier build and not used: these models prove "
                "themselves again"
            )
            _log.warning(message, extra=fields(recommendation=need.name, targets=lost))
        return found

    def _log_unused_file(self, need: LoadNeed, problem: str) -> Mapping[Target, SeriesVerdict]:
        """Log why a file is not used, and return no verdicts: the models are compared again on the history."""
        about = fields(recommendation=need.name, file=str(self._path(need.name)), problem=problem)
        _log.warning("stored choices of models are not used: models are compared anew", extra=about)
        return {}

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


def _problem_of(stored: _Stored, need: LoadNeed, now: float) -> str:
    """Return why a file cannot be used; empty if it can."""
    age = now - stored.time
    if stored.version not in {VERSION, _WITHOUT_PROOFS}:
        return f"it is of version {stored.version}, and {VERSION} is read"
    if stored.learned_for != _identity_of(need):
        return "it was written for another configuration of the recommendation"
    if age < 0:
        return f"it was written {-age:.0f} s in the future: check the clock"
    return f"it was written {age / DAY_SECONDS:.1f} days ago" if age > OLDEST_SECONDS else ""


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
        proof=_NO_PROOF if verdict.proof is None else msgspec.Raw(msgspec.json.encode(_stored_proof(verdict.proof))),
    )


def _stored_proof(proof: SeriesProof) -> _StoredProof:
    return _StoredProof(tuple(str(name) for name in proof.names), proof.values)


def _verdict_of(stored: _StoredVerdict) -> tuple[Target, SeriesVerdict]:
    bill = None if stored.cost_as_headroom is None else Bill(stored.cost_as_headroom, stored.cost_above_load)
    parts = tuple(Part(each.model, each.weight, each.scale) for each in stored.parts)
    verdict = SeriesVerdict(
        stored.model,
        stored.reason,
        Blend(stored.headroom, parts),
        bill,
        stored.shortage,
        stored.last_day,
        _proof_of(stored.proof),
    )
    return None if stored.target is None else TargetReference(*stored.target), verdict


def _proof_of(stored: msgspec.Raw) -> SeriesProof | None:
    """Return the proof; None if there is none, or if it cannot be used."""
    if not bytes(stored):
        return None
    with suppress(msgspec.DecodeError, UnicodeError):
        found = _STORED_PROOF.decode(stored)
        proof = SeriesProof(found.names, found.values)
        return proof if proof.proven is not None else None
    return None
