"""A CUDA driver for machines without a device: kernels are compiled for the host. Blocks run one after another, each thread of
a block up to where it waits for the others: in an order that is drawn anew each time, so that what depends on a barrier that
is missing comes out wrong. Memory that nobody wrote is no zeros.
"""

from __future__ import annotations

import ctypes
import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compass_sim.engine import compile_and_link
from compassc.targets import dialects

_HEAD = """
#define __device__
#define __global__
#define __forceinline__ inline
struct dim3_ { unsigned x, y, z; };
static dim3_ blockIdx, threadIdx;
static float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
typedef _Float16 float16;
typedef __bf16 bfloat16;
#define __shared__ __attribute__((section("shared_"))) static
#define __syncthreads() meet_(__LINE__)
extern "C" {
int getcontext(void *);
void makecontext(void *, void (*)(), int, ...);
int swapcontext(void *, const void *);
extern char __start_shared_[] __attribute__((weak, visibility("hidden")));
extern char __stop_shared_[] __attribute__((weak, visibility("hidden")));
}
struct context_ { unsigned long flags; void *next, *stack; int how; unsigned long size; alignas(16) char rest[8192]; };
enum { THREADS = 1024, STACK = 1 << 16, DONE = -1 };
static context_ home_, thread_[THREADS];
static char stack_[THREADS][STACK] __attribute__((aligned(16)));
static int place_[THREADS];
static unsigned now_, size_[3];
static void (*kernel_)(void **);
static void **given_;
static unsigned long long seed_;
static unsigned drawn_() { return (seed_ = seed_ * 6364136223846793005ull + 1442695040888963407ull) >> 33; }
static void mix_(unsigned *order, unsigned n) {
  for (unsigned i = 0; i < n; i++) order[i] = i;
  for (unsigned i = n; i > 1; i--) { unsigned j = drawn_() % i, x = order[j]; order[j] = order[i - 1]; order[i - 1] = x; }
}
static void meet_(int line) { place_[now_] = line; swapcontext(&thread_[now_], &home_); }
static void begin_() { kernel_(given_); meet_(DONE); }
static void turn_(unsigned t) {
  now_ = t, threadIdx = {t % size_[0], t / size_[0] % size_[1], t / size_[0] / size_[1]};
  swapcontext(&home_, &thread_[t]);
}
static int block_(unsigned n) {
  static unsigned order[THREADS];
  for (char *c = __start_shared_; c < __stop_shared_; c++) *c = 0x55;
  for (unsigned t = 0; t < n; t++) {
    getcontext(&thread_[t]);
    thread_[t].stack = stack_[t], thread_[t].size = STACK, thread_[t].next = &home_;
    makecontext(&thread_[t], begin_, 0);
  }
  do {
    mix_(order, n);
    for (unsigned i = 0; i < n; i++) turn_(order[i]);
    for (unsigned t = 1; t < n; t++) if (place_[t] != place_[0]) return 1;
  } while (place_[0] != DONE);
  return 0;
}
static int launch_(const unsigned *g, const unsigned *b, void **p, unsigned long long seed, void (*kernel)(void **)) {
  kernel_ = kernel, given_ = p, seed_ = seed;
  unsigned n = b[0] * b[1] * b[2], count = g[0] * g[1] * g[2];
  for (int i = 0; i < 3; i++) size_[i] = b[i];
  unsigned first = count ? drawn_() % count : 0, back = drawn_() % 2;
  for (unsigned i = 0; i < count; i++) {
    unsigned k = (first + (back ? count - i : i)) % count;
    blockIdx = {k % g[0], k / g[0] % g[1], k / g[0] / g[1]};
    if (block_(n)) return 1;
  }
  return 0;
}
"""
_CALLS = "exp exp2 log tanh sin cos sqrt floor ceil rint erf pow fabs".split()
_KERNEL = re.compile(r'extern "C" __global__ void (\w+)\(([^)]*)\)')


def _host_text(text: str) -> str:
    """The CUDA C as C++, with a function for each kernel that runs all of its threads."""
    names = "\n".join(f"#define {f}{s} __builtin_{f}{s}" for f in _CALLS for s in ("f", ""))
    runs = []
    for name, params in _KERNEL.findall(text):
        types = [p.rpartition(" ")[0].replace("__restrict__", "") for p in params.split(", ")] if params else []
        given = ", ".join(f"*({kind}*)p[{i}]" for i, kind in enumerate(types))
        runs.append(
            f"static void each_{name}(void **p) {{ {name}({given}); }}\n"
            f'extern "C" __attribute__((visibility("default"))) int run_{name}(const unsigned *g, const unsigned *b, '
            f"void **p, unsigned long long seed) {{ return launch_(g, b, p, seed, each_{name}); }}"
        )
    return "\n".join([_HEAD, names, text.replace(dialects._HALVES, ""), *runs])


class Emulated:
    """What `ctypes` has of the driver's library; `sources`: the CUDA C for each PTX that is loaded, `seed`: of the orders in
    which threads run; `nvrtc`: whether NVRTC has to take each text, too; `edit`: what is
    done to it before."""

    nvrtc = False
    edit: Callable[[str], str] = staticmethod(str)

    def __init__(self, folder: Path) -> None:
        self.folder, self.sources = folder, dict[bytes, str]()
        self.memory: dict[int, np.ndarray] = {}
        self.functions: list[Any] = []
        self.count, self.launched, self.seed = itertools.count(1), 0, 0

    def cuInit(self, flags):
        return 0

    def cuDeviceGetCount(self, count):
        count._obj.value = 1
        return 0

    def cuDeviceGet(self, device, number):
        return 0

    cuDevicePrimaryCtxRetain = cuDeviceGet

    def cuCtxSetCurrent(self, context):
        return 0

    def cuCtxSynchronize(self):
        return 0

    def cuDeviceGetAttribute(self, value, number, device):
        value._obj.value = 1024
        return 0

    def cuModuleLoadData(self, module, image):
        source = self.sources[image]
        number = next(self.count)
        path, made = self.folder / f"k{number}.cpp", self.folder / f"k{number}.so"
        path.write_text(_host_text(self.edit(source)))
        flags = ("-x", "c++", "-std=gnu++17", "-fPIC", "-march=native", "-fwrapv", "-O1", "-Wno-everything")
        flags += ("-ftrivial-auto-var-init=pattern",)
        compile_and_link([path], made, flags, ("-shared",))
        self.library = ctypes.CDLL(str(made))
        return 0

    def cuModuleGetFunction(self, function, module, name):
        self.functions.append(getattr(self.library, f"run_{name.decode()}"))
        function._obj.value = len(self.functions)
        return 0

    def cuMemAlloc_v2(self, pointer, size):
        made = np.full(size.value, 0x55, np.uint8)
        pointer._obj.value = made.ctypes.data
        self.memory[made.ctypes.data] = made
        return 0

    def cuMemFree_v2(self, pointer):
        del self.memory[pointer.value]
        return 0

    def cuMemcpyHtoD_v2(self, device, host, size):
        ctypes.memmove(device.value, host.value, size.value)
        return 0

    def cuMemcpyDtoH_v2(self, host, device, size):
        ctypes.memmove(host.value, device.value, size.value)
        return 0

    def cuLaunchKernel(self, function, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra):
        grid, block = ((ctypes.c_uint * 3)(*sizes) for sizes in ((gx, gy, gz), (bx, by, bz)))
        status = self.functions[function.value - 1](grid, block, arguments, ctypes.c_ulonglong(self.seed))
        assert status == 0, "some threads of a block wait where others do not come"
        self.launched += 1
        self.seed += 1
        return 0


@contextmanager
def emulated(folder: Path) -> Iterator[Emulated]:
    """A machine with a device. What is loaded is the text: PTX, of which there is some where NVRTC is, is not looked at."""
    from compass_runtime import cuda_module
    from compassc.targets import nvrtc

    driver, load, real = Emulated(folder), ctypes.CDLL, nvrtc.ptx

    def library(name: str, *rest: Any, **more: Any) -> Any:
        return driver if name == "libcuda.so.1" else load(name, *rest, **more)

    def ptx(text: str, name: str, arch: str) -> str:
        if driver.nvrtc:
            real(text, name, arch)
        made = str(hash(text))
        driver.sources[f"{made}\0".encode()] = text
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda_module.Driver, "_made", None)
        patch.setattr(ctypes, "CDLL", library)
        patch.setattr(nvrtc, "ptx", ptx)
        yield driver
