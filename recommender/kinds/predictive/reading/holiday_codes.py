"""The shape of `holidays`: one code of a country or of a part of it, or a list of them."""

from __future__ import annotations

from typing import Final

from adapter.foundation.documents.scalars import text
from adapter.foundation.documents.shapes import ListOf, OneOf, WrongValueError
from adapter.foundation.documents.tree import ScalarNode, SequenceNode
from recommender.kinds.predictive.public_holidays import UnknownHolidaysError, check_code


def _code(written: str) -> str:
    try:
        check_code(written)
    except UnknownHolidaysError as error:
        raise WrongValueError(str(error), error.fix) from None
    return written


_CODE: Final = text().then(_code)
HOLIDAYS: Final = OneOf(
    {
        ScalarNode: _CODE.then(lambda code: (code,)),
        SequenceNode: ListOf(
            _CODE, empty=("`holidays` names no country", "write one, such as DE, or remove the key"), unique=str
        ),
    }
)
