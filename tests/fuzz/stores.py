"""Random statements that write memory, and new memory and pointers."""

from __future__ import annotations

from compassc.ir.dtypes import INT32, STORAGE, DataType

from .draw import INTS
from .expressions import Expressions
from .scope import Constant, Matrix, Region, Variable
from .tree import Stmt, simple

DEPTH = 3


class Stores(Expressions):
    """Stores in every form, transfers, allocations and pointers into what there is."""

    types: list[DataType]
    """What variables get, and with it most of what is stored."""

    counter = 0

    def name(self, letter: str) -> str:
        """A new name, or one of a block that was left."""
        visible = set(self.scope.names())
        free = [n for n in self.scope.retired if n not in visible]
        if free and self.chance(0.15):
            self.scope.retired.remove(found := self.rng.choice(free))
            return found
        self.counter += 1
        return f"{letter}{self.counter}"

    # ---------------------------------------------------------------------------------------------- stores

    def target(self, elem: DataType, size: int) -> Region | None:
        return self.region(elem, size, writable=True)

    def store(self) -> list[Stmt] | None:
        elem = self.rng.choice([t for t in self.types if not t.is_mask and not t.is_bool])
        if elem.is_vector:
            return self.slice_store(elem)
        found = self.target(elem, 1)
        if found is None:
            return None
        value = elem
        if elem.is_integer and self.chance(0.2):
            value = self.rng.choice(INTS)
        return [simple(f"{found.name}[{{}}] = {{}}", self.index(found.size - 1, 2), self.gen(value, DEPTH))]

    def slice_store(self, t: DataType) -> list[Stmt] | None:
        found = self.target(t.element_of, t.lanes)
        span = self.span(found, t.lanes, 0) if found else None
        if found is None or span is None:
            return None
        start, stride = int(span[0].text()), span[1]
        step = f":{stride}" if stride > 1 else ""
        where = f"{found.name}[{start}:{start + t.lanes * stride}{step}]"
        if self.chance(0.2) and not t.is_bfloat:
            return [simple(f"{where} = {{}}", self.gen(t.element_of, 2))]
        return [simple(f"{where} = {{}}", self.gen(t, DEPTH))]

    def region_augmented(self) -> list[Stmt] | None:
        elem = self.rng.choice([t for t in STORAGE if not t.is_bfloat])
        found = self.target(elem, 1)
        if found is None:
            return None
        if elem.is_integer and self.chance(0.2):
            return [simple(f"{found.name}[{{}}] /= {{}}", self.index(found.size - 1, 1), self.safe_divisor(elem, 1))]
        symbol = self.rng.choice("+-*")
        if self.chance(0.25) and not (symbol == "*" and elem.bits == 8):
            lanes = min(self.rng.randint(2, 40), found.size)
            start = self.rng.randint(0, found.size - lanes)
            value = self.gen(elem if self.chance(0.3) else elem.with_lanes(lanes), 2)
            return [simple(f"{found.name}[{start}:{start + lanes}] {symbol}= {{}}", value)]
        return [simple(f"{found.name}[{{}}] {symbol}= {{}}", self.index(found.size - 1, 1), self.gen(elem, 2))]

    def matrix_store(self) -> list[Stmt] | None:
        t = self.rng.choice([t for t in self.types if not t.is_bool] + [INT32])
        found = self.matrix(t.element_of, t.lanes, True)
        if found is None:
            return None
        text, args = self.indices(found, t.lanes, 2)
        symbol = self.rng.choice(("", "+", "-")) if t.is_scalar else ""
        return [simple(f"{found.name}[{text}] {symbol}= {{}}", *args, self.gen(t, 2))]

    def vstore(self) -> list[Stmt] | None:
        vectors = [t for t in self.types if t.is_vector and not t.is_mask]
        t = self.rng.choice(vectors)
        if t.is_native and self.chance(0.08):
            where = self.addressed(t)
            if where:
                return [simple(f"S.vstore({{}}, {where})", self.gen(t, 2))]
        found = self.pointed(t.element_of, t.lanes, True)
        span = self.span(found, t.lanes, 2) if found else None
        if found is None or span is None:
            return None
        where, args = self.address(found, span[0])
        args = [self.gen(t, DEPTH), *args]
        options = ""
        if self.chance(0.4):
            options = ", mask={}"
            args.append(self.mask_argument(t.lanes, t.bits, 2))
        if span[1] > 1:
            options += f", stride={span[1]}"
        return [simple(f"S.vstore({{}}, {where}{options})", *args)]

    def scatter(self) -> list[Stmt] | None:
        vectors = [t for t in self.types if t.is_vector and not t.is_mask and t.is_native]
        if not vectors:
            return None
        t = self.rng.choice(vectors)
        found = self.target(t.element_of, 32)
        offsets = self.offsets(t.lanes, found.size - 1, 2) if found else None
        if found is None or offsets is None:
            return None
        return [simple(f"S.vstore_scatter({{}}, {found.name}, {{}})", self.gen(t, 2), offsets)]

    # ---------------------------------------------------------------------------------------------- transfers

    def transfers(self) -> list[tuple[Region, Region]]:
        """Destination and source of what DMA can move."""
        regions = [r for r in self.scope.regions if not r.type.is_vector and r.scope in ("global", "lsram")]
        return [(d, s) for d in regions for s in regions if d.writable and d.type is s.type and d.scope != s.scope]

    def copy(self) -> list[Stmt] | None:
        """A DMA transfer between external and internal memory."""
        pairs = self.transfers()
        if not pairs:
            return None
        d, s = self.rng.choice(pairs)
        n = self.rng.randint(1, min(d.size, s.size))
        to, more = self.address(d, self.index(d.size - n, 1))
        source, rest = self.address(s, self.index(s.size - n, 1))
        if self.chance(0.3):
            event = self.name("e")
            text = f"{event} = S.alloc_events(1)\nS.async_dma_copy({to}, {source}, {n}, event={event})\n"
            return [simple(text + f"S.wait_events({event})\nS.free_events({event})", *more, *rest)]
        if self.chance(0.3):
            return self.rows(d, s)
        return [simple(f"S.dma_copy({to}, {source}, {n})", *more, *rest)]

    def rows(self, d: Region, s: Region) -> list[Stmt]:
        """A transfer of several rows, or of pixels that are repeated."""
        width, times = self.rng.randint(1, 4), self.rng.randint(1, 3)
        far, near = width + self.rng.randint(0, 3), width + self.rng.randint(0, 3)
        if min(d.size, s.size) < 32:
            return [simple(f"S.dma_copy({d.name}, {s.name}, 1)")]
        if self.chance(0.4):
            high, wide = self.rng.randint(1, 2), self.rng.randint(1, 3)
            return [
                simple(f"S.dma_upsample({d.name}, {s.name}, {high}, {wide}, 1, {times}, {near}, 1, {times * wide})")
            ]
        return [simple(f"S.dma_copy({d.name}, {s.name}, {width}, {far}, {times}, {near})")]

    def fill(self) -> list[Stmt] | None:
        found = [r for r in self.scope.regions if r.scope == "lsram" and r.writable and r.type.is_integer]
        found = [r for r in found if not r.type.is_vector]
        if not found:
            return None
        region = self.rng.choice(found)
        n = self.rng.randint(1, region.size)
        return [simple(f"S.dma_memset({region.name}, {self.number(region.type)}, {n})")]

    # ---------------------------------------------------------------------------------------------- names

    def split(self) -> list[Stmt] | None:
        """The registers of a wide vector as variables."""
        found = [v for v in self.scope.variables if v.type.is_vector and not v.type.is_mask]
        found = [v for v in found if v.type.total_bits % 256 == 0 and v.type.total_bits > 256]
        if not found:
            return None
        v = self.rng.choice(found)
        part = v.type.with_lanes(v.type.native_lanes)
        names = [self.name("v") for _ in range(v.type.lanes // part.lanes)]
        for name in names:
            self.scope.add(Variable(name, part))
        return [simple(f"{', '.join(names)} = S.vsplit({v.name})")]

    def transpose(self) -> list[Stmt] | None:
        """A small matrix moved between external and internal memory, its rows becoming columns."""
        rows, columns = self.rng.randint(1, 5), self.rng.randint(1, 6)
        pairs = [p for p in self.transfers() if min(p[0].size, p[1].size) >= rows * columns]
        if not pairs:
            return None
        d, s = self.rng.choice(pairs)
        return [simple(f"S.dma_transpose2d({d.name}, {s.name}, {rows}, {columns})")]

    def without_effect(self) -> list[Stmt]:
        return [simple(self.rng.choice(("S.flush_cache()", "S.perf_tick_begin(1)\nS.perf_tick_end(1)")))]

    def allocate(self) -> list[Stmt]:
        """New memory, filled at once."""
        t = self.rng.choice([t for t in self.types if not t.is_vector and not t.is_bool] + [INT32])
        scope = self.rng.choice(("private", "lsram", "lsram"))
        name, block, i = self.name("m"), self.name("b"), self.name("i")
        size = self.rng.choice((32, 64, 128))
        self.scope.push()
        counter = Variable(i, INT32, fixed=True)
        self.scope.add(counter)
        value = self.gen(t, 2)
        self.scope.pop()
        region = Region(name, t, size, scope, True)
        if self.chance(0.3):
            columns = self.rng.choice((8, 16))
            matrix = Matrix(block, t, (size // columns, columns), True)
            text = f'{block} = S.alloc_buffer({matrix.shape}, "{t}", "{scope}")\nfor {i} in range({size}):\n'
            text += f"    {block}[{i} // {columns}, {i} % {columns}] = {{}}\n{name} = {block}.addr_of(0)"
            self.scope.add(matrix)
        else:
            text = f'{name} = S.alloc(({size},), "{t}", "{scope}")\nfor {i} in range({size}):\n    {name}[{i}] = {{}}'
        self.scope.add(region)
        return [simple(text, value)]

    def table(self) -> list[Stmt]:
        t = self.rng.choice([t for t in STORAGE if not t.is_bfloat])
        size = self.rng.choice((8, 32, 64))
        name = self.name("t")
        data = ", ".join(self.number(t) for _ in range(size))
        self.scope.add(Region(name, t, size, "constant", False, raw=True, buffer=True))
        return [simple(f'{name} = S.alloc_const(({size},), "{t}", [{data}])')]

    def constant_name(self) -> list[Stmt]:
        """A name for a number that is known when the kernel is compiled."""
        found = Constant(self.name("c"), self.rng.randint(0, 12))
        self.scope.add(found)
        return [simple(f"{found.name} = S.meta_var({found.value})")]

    # ---------------------------------------------------------------------------------------------- pointers

    def of_variable(self) -> list[Stmt] | None:
        """A pointer to a variable."""
        t = self.rng.choice([t for t in self.types if not t.is_bool and (t.is_scalar or t.is_native)])
        text = self.addressed(t)
        if not text:
            return None
        name = self.name("q")
        self.scope.add(Region(name, t, 1, "private", True))
        return [simple(f"{name} = {text}")]

    def move(self) -> list[Stmt] | None:
        """A pointer of this block moved on, or any pointer set to other memory that has no less behind it."""
        own = [r for r in self.scope.frames[-1].regions if r.movable and r.size > 8]
        if own and self.chance(0.6):
            return [self.moved_on(self.rng.choice(own))]
        frames = self.scope.frames[-1:] if self.frozen else self.scope.frames
        found = [r for frame in frames for r in frame.regions if r.movable]
        if not found:
            return None
        region = self.rng.choice(found)
        sources = [r for frame in self.scope.frames[: self.scope.frame_of(region) + 1] for r in frame.regions]
        sources = [r for r in sources if r is not region and not r.buffer and self.replaces(r, region)]
        if not sources:
            return None
        source = self.rng.choice(sources)
        where, args = self.address(source, self.index(source.size - region.size, 2))
        return [simple(f"{region.name} = {where}", *args)]

    def moved_on(self, region: Region) -> Stmt:
        limit = self.rng.randint(1, region.size // 2)
        step = self.index(limit, 2)
        region.size -= limit
        return simple(f"{region.name} {self.rng.choice(('+=', f'= {region.name} +'))} {{}}", step)

    def swap_pointers(self) -> list[Stmt] | None:
        """Two pointers of this block exchanged, or one moved while memory is read through it."""
        own = [r for r in self.scope.frames[-1].regions if r.movable and not r.type.is_vector]
        pairs = [(a, b) for a in own for b in own if a is not b and a.type is b.type and a.scope == b.scope]
        pairs = [(a, b) for a, b in pairs if a.writable == b.writable]
        if not pairs:
            return None
        a, b = self.rng.choice(pairs)
        a.size = b.size = min(a.size, b.size)
        a.raw = b.raw = a.raw and b.raw
        found = [v for v in self.mutable() if v.type is a.type]
        if not found or self.chance(0.5):
            return [simple(f"{a.name}, {b.name} = {b.name}, {a.name}")]
        v, place = self.rng.choice(found), self.index(a.size - 1, 1)
        return [simple(f"{a.name}, {v.name}, {b.name} = {b.name}, {a.name}[{{}}], {a.name}", place)]

    @staticmethod
    def replaces(new: Region, old: Region) -> bool:
        """Whether all that may be done behind `old` may be done behind `new`."""
        same = new.type is old.type and new.scope == old.scope and new.size >= old.size
        return same and new.writable >= old.writable and new.raw >= old.raw

    def alias(self) -> list[Stmt] | None:
        """A pointer into memory: moved, or with another type."""
        found = [r for r in self.scope.regions if not r.type.is_vector and r.size >= 16 and not r.buffer]
        if not found:
            return None
        region, name = self.rng.choice(found), self.name("q")
        if self.chance(0.4):
            region = self.returned_pointer(region.type, 16) or region
        if self.chance(0.5) or region.name.endswith(")"):
            limit = region.size // 2
            where, args = self.address(region, self.index(limit, 2))
            own = Region(name, region.type, region.size - limit, region.scope, region.writable, region.raw)
            own.movable = self.chance(0.6)
            own.root = name if own.movable else region.root
            self.scope.add(own)
            if not args and not region.name.endswith(")"):
                where = f"{region.name} + 0"
            made = [simple(f"{name} = {where}", *args)]
            if own.movable and own.size > 8 and self.chance(0.4):
                made.append(self.moved_on(own))
            return made
        to = self.rng.choice(STORAGE)
        if self.chance(0.3):
            to = to.with_lanes(to.native_lanes)
        if (
            to.is_floating
            and to.element_of is not region.type
            and not to.is_vector
            and region.writable
            and self.chance(0.5)
        ):
            return None
        if region.type.is_floating and not region.raw and to.element_of is not region.type:
            return None
        size = region.size * region.type.bytes // to.total_bytes
        if size < 1 or to is region.type:
            return None
        writable = region.writable and (not to.is_floating or region.type.is_floating)
        self.scope.add(Region(name, to, size, region.scope, writable, region.raw and not writable, root=region.root))
        return [simple(f'{name} = {region.name}.as_ptr("{to}")')]
