from __future__ import annotations

import pytest

from adapter.foundation.sources.kubernetes.errors import ServerError, UnknownOutcomeError
from adapter.foundation.sources.kubernetes.writing import Fence
from recommender.decisions.record import TargetReference
from recommender.outputs.late_effects import LateEffects
from recommender.outputs.write_attempt import LONGEST_EFFECT_RATIO

WEB, API = (TargetReference("apps/v1", "Deployment", "shop", name) for name in ("web", "api"))
FENCE = Fence(5.0, lambda _: True)
LONGEST_SECONDS = LONGEST_EFFECT_RATIO * FENCE.seconds


@pytest.mark.parametrize(
    ("error", "elapsed", "may_come"),
    [
        (UnknownOutcomeError("no answer"), 0.0, True),
        (UnknownOutcomeError("no answer"), LONGEST_SECONDS - 0.1, True),
        (UnknownOutcomeError("no answer"), LONGEST_SECONDS, False),
        (ServerError("etcd has no leader", 500), 0.0, False),
        (None, 0.0, False),
    ],
)
def test_only_a_write_without_an_answer_may_take_effect_later(
    error: Exception | None, elapsed: float, *, may_come: bool
) -> None:
    now = [1000.0]
    effects = LateEffects(lambda: now[0])

    def write() -> None:
        with effects.note(WEB, FENCE):
            if error is not None:
                raise error

    if error is None:
        write()
    else:
        with pytest.raises(type(error)):
            write()
    now[0] += elapsed
    assert (effects.may_come(WEB), effects.may_come(API)) == (may_come, False)
