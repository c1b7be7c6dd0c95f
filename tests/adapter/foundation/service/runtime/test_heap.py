from __future__ import annotations

import subprocess
import sys

THREADS_THAT_ALLOCATE = """
import ctypes, os, threading
from adapter.foundation.service.runtime.heap import settle_heap
settle_heap()

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
together = threading.Barrier(12)
def allocate():
    together.wait()
    libc.malloc(ctypes.c_size_t(1000))
    together.wait()
threads = [threading.Thread(target=allocate) for _ in range(12)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
libc.fopen.restype = ctypes.c_void_p
out = libc.fopen(b"/dev/stdout", b"w")
libc.malloc_info(0, ctypes.c_void_p(out))
libc.fflush(ctypes.c_void_p(out))
"""


def test_threads_share_two_heaps() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", THREADS_THAT_ALLOCATE], capture_output=True, text=True, timeout=30, check=True
    )
    assert 1 <= ran.stdout.count("<heap nr=") <= 2


MEMORY_THAT_IS_FREED = """
from adapter.foundation.service.runtime.heap import return_free_memory, settle_heap
settle_heap()

def resident_pages():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])

kept = []
for _ in range(5_000):
    freed = bytearray(12_000)
    kept.append(bytearray(600))
    kept.append(freed)
del kept[1::2], freed
before = resident_pages()
return_free_memory()
print(before - resident_pages())
"""


def test_memory_between_blocks_in_use_is_returned() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", MEMORY_THAT_IS_FREED], capture_output=True, text=True, timeout=60, check=True
    )
    assert int(ran.stdout) > 1000
