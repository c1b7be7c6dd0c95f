"""A program of test_decoders.py: processes whose threads decode the same forms for the first time at once.

The first argument says by which way they decode: `shared`, as the product does, or `bare`, by which msgspec 0.22 ends
each process. The second says how many processes there are. They are forked before any form is described, since starting
an interpreter takes longer than the race itself. The program prints the exit code of each of them, as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
from multiprocessing import get_context
from types import ModuleType

import msgspec

from adapter.foundation.objects.decoders import convert, decoder_of

SWITCH_SECONDS = 0.0001
THREADS = 4
PROCESSES_AT_ONCE = 4
FORMS = 40
NESTED = 6
BODY = b'{"f0": {"a": {"x": 1}}, "f5": {"b": ["x"]}}'
CONTENT = msgspec.json.decode(BODY)
SOURCE = "\n".join(
    [
        "from __future__ import annotations",
        "import msgspec",
        *(
            f"class Part{n}(msgspec.Struct):\n    a: dict[str, int] | None = None\n    b: list[str] | None = None"
            for n in range(NESTED)
        ),
        "class Whole(msgspec.Struct):",
        *(f"    f{n}: Part{n} | None = None" for n in range(NESTED)),
    ]
)


def form(number: int) -> type[msgspec.Struct]:
    """Return a new Struct whose fields are Structs; the interpreter may switch threads while msgspec describes it."""
    module = sys.modules[f"form{number}"] = ModuleType(f"form{number}")
    exec(compile(SOURCE, module.__name__, "exec", dont_inherit=True), module.__dict__)
    whole: type[msgspec.Struct] = module.__dict__["Whole"]
    return whole


def decode(form: type[msgspec.Struct], way: str, number: int) -> object:
    if way == "bare":
        return msgspec.convert(CONTENT, form) if number % 2 else msgspec.json.decode(BODY, type=form)
    return convert(CONTENT, form) if number % 2 else decoder_of(form).decode(BODY)


def race(way: str, forms: list[type[msgspec.Struct]]) -> None:
    failures: list[BaseException] = []
    together = threading.Barrier(THREADS)

    def run() -> None:
        try:
            for number, each in enumerate(forms):
                together.wait()
                found = decode(each, way, number)
                assert found == decode(each, way, number + 1)
        except BaseException as error:
            failures.append(error)
            together.abort()
            raise

    sys.setswitchinterval(SWITCH_SECONDS)
    threads = [threading.Thread(target=run) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.exit(1 if failures else 0)


def main(way: str, count: int) -> None:
    forms = [form(number) for number in range(FORMS)]
    processes = [get_context("fork").Process(target=race, args=(way, forms)) for _ in range(count)]
    for first in range(0, count, PROCESSES_AT_ONCE):
        started = processes[first : first + PROCESSES_AT_ONCE]
        for process in started:
            process.start()
        for process in started:
            process.join()
    json.dump([process.exitcode for process in processes], sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
