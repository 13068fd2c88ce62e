"""The microbenchmarks' source: what is written once, and instructions that name many registers."""

from __future__ import annotations

from pathlib import Path
from string import Template

# Columns of the instructions of four warps, and what the data types are called; the last
# operands say whether operands are negated and turned.
GROUP_COLUMNS = (64, 128, 256)
_GROUP_TYPES = {
    "fp16": ("k16.f32.f16.f16", "float", "f", "1, 1, 0, 0", 0x3C003C00, 0x83FF83FF),
    "bf16": ("k16.f32.bf16.bf16", "float", "f", "1, 1, 0, 0", 0x3F803F80, 0x807F807F),
    "tf32": ("k8.f32.tf32.tf32", "float", "f", "1, 1", 0x3F800000, 0x807FE000),
    "fp8": ("k32.f32.e4m3.e4m3", "float", "f", "1, 1", 0x38383838, 0x87878787),
    "int8": ("k32.s32.s8.s8", "int", "r", "", 0, 0xFFFFFFFF),
}
# A of up to three groups of four warps, B of 256 columns, rows of 128 bytes each; alignment.
GROUP_SHARED_BYTES = (3 * 64 + 256) * 128 + 1024

_GROUP = Template("""
// Tensor cores by four warps, operands in shared memory: a step is 16 products a group.
KERNEL(wgmma_${name}_n$n, 384) {
    extern __shared__ unsigned char room[];
    u32 base = ((u32)__cvta_generic_to_shared(room) + 1023) & ~1023u;
    for (u32 i = threadIdx.x; i < (3 * 64 + 256) * 32; i += blockDim.x)
        asm volatile("st.shared.u32 [%0], %1;"
                     :: "r"(base + 4 * i), "r"(${exponents}u | (mixed(i) & ${random}u)));
    asm volatile("fence.proxy.async;" ::: "memory");
    // Rows of 128 bytes, swizzled; eight rows are 1,024 bytes.
    u64 layout = (1ull << 62) | (64ull << 32) | (1ull << 16);
    u64 a = layout | ((base + threadIdx.x / 128 * 8192) >> 4);
    u64 b = layout | ((base + 3 * 8192) >> 4);
    $number d[$sums] = {};
    START
    for (int i = 0; i < steps; i++) {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        #pragma unroll
        for (int j = 0; j < 16; j++)
            asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; "
                "wgmma.mma_async.sync.aligned.m64n$n$types {$outputs}, %$at_a, %$at_b, p$more; }"
                : $registers : "l"(a + j % 4 * 2), "l"(b + j % 4 * 2));
        asm volatile("wgmma.commit_group.sync.aligned; "
                     "wgmma.wait_group.sync.aligned 0;" ::: "memory");
    }
    $number sum = 0;
    for (int j = 0; j < $sums; j++) sum += d[j];
    STOP(sum)
}
""")


def target(capability: tuple[int, int]) -> str:
    """Name what to compile for; instructions of four warps are of one generation only.

    Examples
    --------
    >>> target((8, 6)), target((9, 0))
    ('sm_86', 'sm_90a')
    """
    major, minor = capability
    return f"sm_{major}{minor}" + "a" * issues_groups(capability)


def issues_groups(capability: tuple[int, int]) -> bool:
    """Whether tensor cores take instructions of four warps, as ``wgmma`` does."""
    return capability == (9, 0)


def source(capability: tuple[int, int]) -> str:
    """Write the microbenchmarks for a compute capability.

    Examples
    --------
    >>> ["wgmma_fp8_n256" in source(one) for one in ((8, 6), (9, 0))]
    [False, True]
    """
    text = Path(__file__).with_name("kernels.cu").read_text(encoding="utf-8")
    if not issues_groups(capability):
        return text
    return text + "".join(_group(name, n) for name in _GROUP_TYPES for n in GROUP_COLUMNS)


def _group(name: str, n: int) -> str:
    types, number, letter, more, exponents, random = _GROUP_TYPES[name]
    sums = n // 2
    return _GROUP.substitute(
        name=name,
        n=n,
        types=types,
        number=number,
        exponents=exponents,
        random=random,
        sums=sums,
        outputs=", ".join(f"%{at}" for at in range(sums)),
        registers=", ".join(f'"+{letter}"(d[{at}])' for at in range(sums)),
        at_a=sums,
        at_b=sums + 1,
        more=f", {more}" if more else "",
    )
