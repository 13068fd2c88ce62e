// Microbenchmarks.  All kernels take the same arguments: data and its bytes, steps of the
// loop that is timed, a place for each block's cycles, and one that is hardly ever written,
// so that no result is unused.
typedef unsigned long long u64;
typedef unsigned int u32;

#define KERNEL(name, threads)                                                                \
    extern "C" __global__ void __launch_bounds__(threads)                                    \
        name(u64 data, u64 bytes, int steps, u64 *clocks, u32 *sink)
#define START __syncthreads(); u64 begin = clock64();
#define STOP(value)                                                                          \
    __syncthreads();                                                                         \
    u64 end = clock64();                                                                     \
    if (threadIdx.x == 0) clocks[blockIdx.x] = end - begin;                                  \
    if ((u32)(value) == 0x9e3779b9u) sink[0] = 1;

KERNEL(nothing, 1024) {}

KERNEL(spin, 1024) {
    u64 begin = clock64();
    while (clock64() - begin < 1000ull * steps) {}
}

// Latencies: a thread a block, each load's address from the load before.
#define CHASE(name, load, warm)                                                              \
    KERNEL(name, 32) {                                                                       \
        u64 p = data + bytes / 128 * blockIdx.x / gridDim.x * 128;                                               \
        for (u64 i = 0; i < (warm); i++) asm volatile(load " %0, [%0];" : "+l"(p));          \
        START                                                                                \
        _Pragma("unroll 16")                                                                 \
        for (int i = 0; i < steps; i++) asm volatile(load " %0, [%0];" : "+l"(p));           \
        STOP(p)                                                                              \
    }
CHASE(chase_l1, "ld.global.ca.u64", bytes / 128)
CHASE(chase_past_l1, "ld.global.cg.u64", 0)

KERNEL(chase_shared, 32) {
    __shared__ u32 ring[1024];
    u32 first = (u32)__cvta_generic_to_shared(ring), p = first;
    for (u32 i = 0; i < 1024; i++) ring[i] = first + 4 * ((i + 33) % 1024);
    START
    #pragma unroll 16
    for (int i = 0; i < steps; i++) asm volatile("ld.shared.u32 %0, [%0];" : "+r"(p));
    STOP(p)
}

KERNEL(chain_fma, 32) {
    float x = threadIdx.x, y = 0.5f + data % 3;
    START
    #pragma unroll 128
    for (int i = 0; i < steps; i++) asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(x) : "f"(y));
    STOP(__float_as_uint(x))
}

// Rates of one SM: eight chains a thread; a step is eight operations a thread.
KERNEL(rate_fp32, 1024) {
    float x[8], y = 0.5f + data % 3;
    for (int j = 0; j < 8; j++) x[j] = threadIdx.x + j;
    START
    #pragma unroll 16
    for (int i = 0; i < steps; i++)
        for (int j = 0; j < 8; j++)
            asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(x[j]) : "f"(y));
    float sum = 0;
    for (int j = 0; j < 8; j++) sum += x[j];
    STOP(__float_as_uint(sum))
}

#define LOAD(load, v, at)                                                                    \
    asm volatile(load " {%0, %1, %2, %3}, [%4];"                                             \
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : at)

// A step is a load of 16 bytes a thread.
#define VECTORS(load, at)                                                                    \
    START                                                                                    \
    _Pragma("unroll 4")                                                                      \
    for (int i = 0; i < steps; i++) {                                                        \
        uint4 v;                                                                             \
        LOAD(load, v, at);                                                                   \
        sum ^= v.x ^ v.y ^ v.z ^ v.w;                                                        \
    }                                                                                        \
    STOP(sum)

KERNEL(rate_shared, 1024) {
    __shared__ uint4 room[2048];
    u32 first = (u32)__cvta_generic_to_shared(room), sum = 0;
    for (int i = threadIdx.x; i < 2048; i += blockDim.x) room[i] = make_uint4(i, i, i, i);
    VECTORS("ld.shared.v4.u32", "r"(first + ((threadIdx.x * 16 + i * 512) & 32767)))
}

KERNEL(rate_l1, 1024) {
    u32 sum = 0;
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) {
        uint4 v;
        LOAD("ld.global.ca.v4.u32", v, "l"(data + i * 16));
        sum ^= v.x;
    }
    VECTORS("ld.global.ca.v4.u32", "l"(data + ((threadIdx.x * 16 + i * 512) & 16383)))
}

// A step is a load of four bytes a thread, each of another line.
KERNEL(rate_lines, 1024) {
    u32 sum = 0, v;
    for (int i = threadIdx.x; i < 128; i += blockDim.x) {
        asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(v) : "l"(data + i * 128));
        sum ^= v;
    }
    START
    #pragma unroll 4
    for (int i = 0; i < steps; i++) {
        u64 at = data + ((threadIdx.x * 128 + i * 4096) & 16383) + i % 32 * 4;
        asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(v) : "l"(at));
        sum ^= v;
    }
    STOP(sum)
}

// All blocks together read all bytes, a power of two; a step is once through them.
KERNEL(read, 1024) {
    u32 sum = 0;
    u64 stride = (u64)gridDim.x * blockDim.x * 16, most = bytes * steps;
    u64 at = (blockIdx.x * (u64)blockDim.x + threadIdx.x) * 16;
    START
    for (; at + 7 * stride < most; at += 8 * stride) {
        uint4 v[8];
        #pragma unroll
        for (int j = 0; j < 8; j++)
            LOAD("ld.global.cg.v4.u32", v[j], "l"(data + ((at + j * stride) & (bytes - 1))));
        #pragma unroll
        for (int j = 0; j < 8; j++) sum ^= v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
    }
    for (; at < most; at += stride) {
        uint4 v;
        LOAD("ld.global.cg.v4.u32", v, "l"(data + (at & (bytes - 1))));
        sum ^= v.x ^ v.y ^ v.z ^ v.w;
    }
    STOP(sum)
}

__device__ u32 mixed(u32 x) {
    x = (x ^ 61) ^ (x >> 16);
    x *= 9;
    x ^= x >> 4;
    x *= 0x27d4eb2d;
    return x ^ (x >> 15);
}

// Tensor cores by single warps: a step is four products a warp, in four chains.
#define MMA(name, text, number, letter, exponents, random)                                   \
    KERNEL(name, 512) {                                                                      \
        u32 a[4], b[2];                                                                      \
        number d[4][4] = {};                                                                 \
        for (int j = 0; j < 4; j++) a[j] = (exponents) | (mixed(threadIdx.x * 8 + j) & (random)); \
        for (int j = 0; j < 2; j++) b[j] = (exponents) | (mixed(threadIdx.x * 8 + j + 4) & (random)); \
        START                                                                                \
        for (int i = 0; i < steps; i++)                                                      \
            _Pragma("unroll")                                                                \
            for (int j = 0; j < 4; j++)                                                      \
                asm volatile("mma.sync.aligned." text                                        \
                    " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"       \
                    : "+" letter(d[j][0]), "+" letter(d[j][1]), "+" letter(d[j][2]), "+" letter(d[j][3]) \
                    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));     \
        number sum = 0;                                                                      \
        for (int j = 0; j < 4; j++) for (int l = 0; l < 4; l++) sum += d[j][l];              \
        STOP(sum)                                                                            \
    }
#if __CUDA_ARCH__ >= 800
MMA(mma_fp16, "m16n8k16.row.col.f32.f16.f16.f32", float, "f", 0x3c003c00u, 0x83ff83ffu)
MMA(mma_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32", float, "f", 0x3f803f80u, 0x807f807fu)
MMA(mma_tf32, "m16n8k8.row.col.f32.tf32.tf32.f32", float, "f", 0x3f800000u, 0x807fe000u)
MMA(mma_int8, "m16n8k32.row.col.s32.s8.s8.s32", int, "r", 0u, 0xffffffffu)
#endif
#if __CUDA_ARCH__ >= 890
MMA(mma_fp8, "m16n8k32.row.col.f32.e4m3.e4m3.f32", float, "f", 0x38383838u, 0x87878787u)
#endif
