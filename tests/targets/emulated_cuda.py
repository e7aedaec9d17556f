"""A CUDA driver for machines without a device: kernels are compiled for the host. Blocks run one after another; so do the
threads of a block, unless they wait for each other: then each is one of the host's.
"""

from __future__ import annotations

import ctypes
import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np

from compass_sim.engine import compile_and_link
from compassc.targets import cuda_c

_HEAD = """
#define __device__
#define __global__
#define __forceinline__ inline
struct dim3_ { unsigned x, y, z; };
static thread_local dim3_ blockIdx, threadIdx;
static float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
typedef _Float16 float16;
typedef __bf16 bfloat16;
#define __shared__ static
extern "C" {
int pthread_create(unsigned long *, void *, void *(*)(void *), void *);
int pthread_join(unsigned long, void **);
int pthread_barrier_init(void *, void *, unsigned);
int pthread_barrier_wait(void *);
}
static long meeting_[8];
static void __syncthreads() { pthread_barrier_wait(meeting_); }
struct work_ { dim3_ block, thread; void **p; void (*run)(void **); };
static void *begin_(void *given) {
  work_ *w = (work_ *)given;
  blockIdx = w->block, threadIdx = w->thread;
  w->run(w->p);
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
        wait = "__syncthreads();" in text.split(f" {name}(", 1)[1].split('extern "C"', 1)[0]
        if wait:
            blocks = "".join(f"for (unsigned {d} = 0; {d} < g[{i}]; {d}++) " for i, d in enumerate("xyz"))
            runs.append(
                f"static void each_{name}(void **p) {{ {name}({given}); }}\n"
                f'extern "C" __attribute__((visibility("default"))) void run_{name}(const unsigned *g, const unsigned *b, '
                "void **p) { static work_ work[1024]; static unsigned long id[1024]; unsigned n = b[0] * b[1] * b[2]; "
                f"pthread_barrier_init(meeting_, 0, n); {blocks} {{ for (unsigned t = 0; t < n; t++) {{ "
                f"work[t] = {{{{x, y, z}}, {{t % b[0], t / b[0] % b[1], t / b[0] / b[1]}}, p, each_{name}}}; "
                "pthread_create(&id[t], 0, begin_, &work[t]); } for (unsigned t = 0; t < n; t++) pthread_join(id[t], 0); } }"
            )
            continue
        loops = "".join(
            f"for ({unit}.{d} = 0; {unit}.{d} < {of}[{i}]; {unit}.{d}++) "
            for unit, of in (("blockIdx", "g"), ("threadIdx", "b"))
            for i, d in enumerate("xyz")
        )
        runs.append(
            f'extern "C" __attribute__((visibility("default"))) void run_{name}(const unsigned *g, const unsigned *b, '
            f"void **p) {{ {loops}{name}({given}); }}"
        )
    return "\n".join([_HEAD, names, text.replace(cuda_c._HALVES, ""), *runs])


class Emulated:
    """What `ctypes` has of the driver's library; `sources`: the CUDA C for each PTX that is loaded."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.sources = folder, dict[bytes, str]()
        self.memory: dict[int, np.ndarray] = {}
        self.functions: list[Any] = []
        self.count, self.launched = itertools.count(1), 0

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
        path.write_text(_host_text(source))
        flags = ("-x", "c++", "-std=gnu++17", "-fPIC", "-march=native", "-fwrapv", "-O1", "-Wno-everything")
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
        self.functions[function.value - 1](grid, block, arguments)
        self.launched += 1
        return 0
