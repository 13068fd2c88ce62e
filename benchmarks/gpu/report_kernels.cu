// Kernels of reports 000 to 002, written anew from their descriptions, and what times them.
// On a machine with an NVIDIA GPU (CUDA 12 or newer):
//
//     nvcc -O3 -arch=sm_90 report_kernels.cu -o report_kernels
//     ./report_kernels            # case,microseconds: median of 9 repeats, caches warm
//     ncu --csv --metrics smsp__inst_executed.sum,... ./report_kernels counters
//
// benchmarks/gpu/README.md lists the counters.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>
#define OK(x)                                                      \
  do {                                                             \
    cudaError_t e = (x);                                           \
    if (e) {                                                       \
      printf("ERR %s line %d\n", cudaGetErrorString(e), __LINE__); \
    }                                                              \
  } while (0)
// ---- report 000: direct convolution, filter and block known to the compiler
template <int K, int B, int NX, int NI>
__global__ void direct(const float* __restrict__ syn, const float* in, float* out, int Nn) {
  constexpr int T = B + K - 1, PAD = NX + K - 1;
  __shared__ float s[T][T];
  int tx = threadIdx.x, ty = threadIdx.y, bx = blockIdx.x * B, by = blockIdx.y * B, n = blockIdx.z,
      x = bx + tx, y = by + ty;
  float sum = 0;
  for (int i = 0; i < NI; i++) {
    for (int dy = ty; dy < T; dy += B)
      for (int dx = tx; dx < T; dx += B) {
        int gy = by + dy, gx = bx + dx;
        if (gy < PAD && gx < PAD) s[dy][dx] = in[(i * PAD + gy) * PAD + gx];
      }
    __syncthreads();
    if (x < NX && y < NX && n < Nn)
      for (int ky = 0; ky < K; ky++)
        for (int kx = 0; kx < K; kx++)
          sum += syn[((n * NI + i) * K + ky) * K + kx] * s[ty + ky][tx + kx];
    __syncthreads();
  }
  if (x < NX && y < NX && n < Nn) out[(n * NX + y) * NX + x] = sum > 0 ? sum : sum / 4;
}
// ---- report 001: image filter
__constant__ float cf[225];
__constant__ float cw[14112];
__global__ void rowmap(const float* in, const float* f, float* out, int H, int W, int R) {
  int r = blockIdx.x * blockDim.x + threadIdx.x, c = blockIdx.y * blockDim.y + threadIdx.y;
  size_t z = (size_t)blockIdx.z * H * W;
  if (r >= H || c >= W) return;
  float s = 0;
  for (int i = -R; i <= R; i++)
    for (int j = -R; j <= R; j++) {
      int y = r + i, x = c + j;
      if (y >= 0 && y < H && x >= 0 && x < W)
        s += in[z + y * W + x] * f[(i + R) * (2 * R + 1) + j + R];
    }
  out[z + r * W + c] = s;
}
__global__ void colmap(const float* in, const float* f, float* out, int H, int W, int R) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  size_t z = (size_t)blockIdx.z * H * W;
  if (r >= H || c >= W) return;
  float s = 0;
  for (int i = -R; i <= R; i++)
    for (int j = -R; j <= R; j++) {
      int y = r + i, x = c + j;
      if (y >= 0 && y < H && x >= 0 && x < W)
        s += in[z + y * W + x] * f[(i + R) * (2 * R + 1) + j + R];
    }
  out[z + r * W + c] = s;
}
__global__ void fshared(const float* in, float* out, int H, int W, int R) {
  extern __shared__ float t[];
  int tw = blockDim.x + 2 * R, th = blockDim.y + 2 * R;
  size_t z = (size_t)blockIdx.z * H * W;
  int x0 = blockIdx.x * blockDim.x - R, y0 = blockIdx.y * blockDim.y - R;
  for (int j = threadIdx.y; j < th; j += blockDim.y)
    for (int i = threadIdx.x; i < tw; i += blockDim.x) {
      int y = y0 + j, x = x0 + i;
      t[j * tw + i] = (y >= 0 && y < H && x >= 0 && x < W) ? in[z + y * W + x] : 0.f;
    }
  __syncthreads();
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r >= H || c >= W) return;
  float s = 0;
  for (int i = 0; i <= 2 * R; i++)
    for (int j = 0; j <= 2 * R; j++)
      s += t[(threadIdx.y + i) * tw + threadIdx.x + j] * cf[i * (2 * R + 1) + j];
  out[z + r * W + c] = s;
}
// 2x2 adjacent outputs, sliding window in registers
__global__ void fcoarse(const float* in, float* out, int H, int W, int R) {
  extern __shared__ float t[];
  int bw = 2 * blockDim.x, bh = 2 * blockDim.y, tw = bw + 2 * R, th = bh + 2 * R;
  size_t z = (size_t)blockIdx.z * H * W;
  int x0 = blockIdx.x * bw - R, y0 = blockIdx.y * bh - R;
  for (int j = threadIdx.y; j < th; j += blockDim.y)
    for (int i = threadIdx.x; i < tw; i += blockDim.x) {
      int y = y0 + j, x = x0 + i;
      t[j * tw + i] = (y >= 0 && y < H && x >= 0 && x < W) ? in[z + y * W + x] : 0.f;
    }
  __syncthreads();
  int lx = 2 * threadIdx.x, ly = 2 * threadIdx.y;
  float a = 0, b = 0, c = 0, d = 0;
  for (int i = 0; i <= 2 * R; i++) {
    const float *p = t + (ly + i) * tw + lx, *q = p + tw;
    float u = p[0], v = q[0];
    for (int j = 0; j <= 2 * R; j++) {
      float u1 = p[j + 1], v1 = q[j + 1], w = cf[i * (2 * R + 1) + j];
      a += u * w;
      b += u1 * w;
      c += v * w;
      d += v1 * w;
      u = u1;
      v = v1;
    }
  }
  int x = blockIdx.x * bw + lx, y = blockIdx.y * bh + ly;
  if (y < H && x < W) {
    out[z + y * W + x] = a;
    if (x + 1 < W) out[z + y * W + x + 1] = b;
    if (y + 1 < H) {
      out[z + (y + 1) * W + x] = c;
      if (x + 1 < W) out[z + (y + 1) * W + x + 1] = d;
    }
  }
}
// ---- report 002: layers
__global__ void base(float* y, const float* x, const float* k, int M, int C, int H, int W, int K) {
  int HO = H - K + 1, WO = W - K + 1, WG = (WO + 15) / 16, n = blockIdx.x, m = blockIdx.y,
      h = blockIdx.z / WG * 16 + threadIdx.y, w = blockIdx.z % WG * 16 + threadIdx.x;
  if (h < HO && w < WO) {
    float a = 0;
    for (int c = 0; c < C; c++)
      for (int p = 0; p < K; p++)
        for (int q = 0; q < K; q++)
          a += x[((n * C + c) * H + h + p) * W + w + q] * k[((m * C + c) * K + p) * K + q];
    y[((n * M + m) * HO + h) * WO + w] = a;
  }
}
__global__ void unroll(int C, int H, int W, int K, const float* X, float* U) {
  int HO = H - K + 1, WO = W - K + 1, t = blockIdx.x * blockDim.x + threadIdx.x, WU = HO * WO;
  if (t < C * WU) {
    int c = t / WU, s = t % WU, h = s / WO, w = s % WO, base = c * K * K;
    for (int p = 0; p < K; p++)
      for (int q = 0; q < K; q++) U[(base + p * K + q) * WU + s] = X[(c * H + h + p) * W + w + q];
  }
}
template <int T>
__global__ void mm(const float* A, const float* B, float* Cc, int m, int k, int n) {
  __shared__ float a[T][T], b[T][T];
  int r = blockIdx.y * T + threadIdx.y, c = blockIdx.x * T + threadIdx.x;
  float s = 0;
  for (int i = 0; i < (k + T - 1) / T; i++) {
    a[threadIdx.y][threadIdx.x] =
        (r < m && i * T + threadIdx.x < k) ? A[r * k + i * T + threadIdx.x] : 0;
    b[threadIdx.y][threadIdx.x] =
        (c < n && i * T + threadIdx.y < k) ? B[(i * T + threadIdx.y) * n + c] : 0;
    __syncthreads();
    for (int j = 0; j < T; j++) s += a[threadIdx.y][j] * b[j][threadIdx.x];
    __syncthreads();
  }
  if (r < m && c < n) Cc[r * n + c] = s;
}
template <int T>
__global__ void mmc(const float* B, float* Cc, int m, int k, int n) {
  __shared__ float b[T][T];
  int r = blockIdx.y * T + threadIdx.y, c = blockIdx.x * T + threadIdx.x;
  float s = 0;
  for (int i = 0; i < (k + T - 1) / T; i++) {
    b[threadIdx.y][threadIdx.x] =
        (c < n && i * T + threadIdx.y < k) ? B[(i * T + threadIdx.y) * n + c] : 0;
    __syncthreads();
    if (r < m)
      for (int j = 0; j < T && i * T + j < k; j++) s += cw[r * k + i * T + j] * b[j][threadIdx.x];
    __syncthreads();
  }
  if (r < m && c < n) Cc[r * n + c] = s;
}
template <int T, bool U>
__global__ void fused(const float* __restrict__ A, const float* __restrict__ X,
                      float* __restrict__ Y, int M, int C, int H, int W, int K) {
  __shared__ float a[T][T], b[T][T];
  int HO = H - K + 1, WO = W - K + 1, n = HO * WO, k = C * K * K;
  const float* x = X + (size_t)blockIdx.z * C * H * W;
  float* y = Y + (size_t)blockIdx.z * M * n;
  int r = blockIdx.y * T + threadIdx.y, c = blockIdx.x * T + threadIdx.x;
  int h = c / WO, w = c % WO;
  float s = 0;
  for (int i = 0; i < (k + T - 1) / T; i++) {
    int ca = i * T + threadIdx.x, rb = i * T + threadIdx.y;
    a[threadIdx.y][threadIdx.x] = (r < M && ca < k) ? A[r * k + ca] : 0;
    int ch = rb / (K * K), p = rb % (K * K) / K, q = rb % K;
    b[threadIdx.y][threadIdx.x] = (c < n && rb < k) ? x[(ch * H + h + p) * W + w + q] : 0;
    __syncthreads();
    if (U) {
#pragma unroll
      for (int j = 0; j < T; j++) s += a[threadIdx.y][j] * b[j][threadIdx.x];
    } else {
#pragma unroll 1
      for (int j = 0; j < T; j++) s += a[threadIdx.y][j] * b[j][threadIdx.x];
    }
    __syncthreads();
  }
  if (r < M && c < n) y[r * n + c] = s;
}
__global__ void shconv(float* y, const float* x, const float* k, int M, int C, int H, int W,
                       int K) {
  extern __shared__ float sm[];
  int T = 16, XT = T + K - 1, HO = H - K + 1, WO = W - K + 1, WG = (WO + T - 1) / T, n = blockIdx.x,
      m = blockIdx.y, h0 = threadIdx.y, w0 = threadIdx.x, hb = blockIdx.z / WG * T,
      wb = blockIdx.z % WG * T, h = hb + h0, w = wb + w0;
  float *xs = sm, *ws = sm + XT * XT;
  float a = 0;
  for (int c = 0; c < C; c++) {
    if (h0 < K && w0 < K) ws[h0 * K + w0] = k[((m * C + c) * K + h0) * K + w0];
    __syncthreads();
    for (int i = h; i < hb + XT; i += T)
      for (int j = w; j < wb + XT; j += T)
        xs[(i - hb) * XT + j - wb] = (i < H && j < W) ? x[((n * C + c) * H + i) * W + j] : 0;
    __syncthreads();
    for (int p = 0; p < K; p++)
      for (int q = 0; q < K; q++) a += xs[(h0 + p) * XT + w0 + q] * ws[p * K + q];
    __syncthreads();
  }
  if (h < HO && w < WO) y[((n * M + m) * HO + h) * WO + w] = a;
}

struct Case {
  std::string name;
  std::function<void()> go;
  int reps;
};
std::vector<Case> cases;
float *A, *B, *C, *U;
template <int K, int Bk, int NX, int NI>
void addd() {
  char s[99];
  sprintf(s, "direct_unrolled S=%d K=%d Ni=%d Nn=%d b=%d", NX, K, NI, NI, Bk);
  cases.push_back({s,
                   [] {
                     dim3 g((NX + Bk - 1) / Bk, (NX + Bk - 1) / Bk, NI);
                     direct<K, Bk, NX, NI><<<g, dim3(Bk, Bk)>>>(A, B, C, NI);
                   },
                   1});
}
int main(int argc, char** argv) {
  bool prof = argc > 1;
  size_t big = (size_t)3 << 30;
  OK(cudaMalloc(&A, big));
  OK(cudaMalloc(&B, big));
  OK(cudaMalloc(&C, big));
  OK(cudaMalloc(&U, big));
  cudaMemset(A, 0, big);
  cudaMemset(B, 0, big);
  addd<3, 4, 32, 32>();
  addd<3, 8, 32, 32>();
  addd<3, 16, 32, 32>();
  addd<3, 32, 32, 32>();
  addd<3, 32, 32, 2>();
  addd<3, 32, 32, 4>();
  addd<3, 32, 32, 8>();
  addd<3, 32, 32, 16>();
  addd<3, 32, 32, 64>();
  addd<3, 32, 32, 128>();
  addd<3, 32, 32, 256>();
  addd<3, 32, 32, 512>();
  addd<5, 32, 32, 32>();
  addd<7, 32, 32, 32>();
  addd<9, 32, 32, 32>();
  addd<11, 32, 32, 32>();
  addd<3, 32, 14, 32>();
  addd<3, 32, 28, 32>();
  addd<3, 32, 56, 32>();
  addd<3, 32, 112, 32>();
  addd<3, 32, 256, 32>();
  for (int R : {1, 2, 3, 5, 7}) {
    int S = 2048, Z = 16;
    char s[99];
    auto nm = [&](const char* k, const char* b) {
      sprintf(s, "filt_%s R=%d S=%d Z=%d b=%s", k, R, S, Z, b);
      return std::string(s);
    };
    cases.push_back({nm("rowmap", "16x16"),
                     [=] { rowmap<<<dim3(S / 16, S / 16, Z), dim3(16, 16)>>>(A, B, C, S, S, R); },
                     1});
    cases.push_back({nm("colmap", "32x8"),
                     [=] { colmap<<<dim3(S / 32, S / 8, Z), dim3(32, 8)>>>(A, B, C, S, S, R); },
                     1});
    cases.push_back(
        {nm("shared", "32x8"),
         [=] {
           fshared<<<dim3(S / 32, S / 8, Z), dim3(32, 8), (32 + 2 * R) * (8 + 2 * R) * 4>>>(A, C, S,
                                                                                            S, R);
         },
         1});
    cases.push_back(
        {nm("slide2", "32x8"),
         [=] {
           fcoarse<<<dim3(S / 64, S / 16, Z), dim3(32, 8), (64 + 2 * R) * (16 + 2 * R) * 4>>>(
               A, C, S, S, R);
         },
         1});
    cases.push_back(
        {nm("slide2", "16x16"),
         [=] {
           fcoarse<<<dim3(S / 32, S / 32, Z), dim3(16, 16), (32 + 2 * R) * (32 + 2 * R) * 4>>>(
               A, C, S, S, R);
         },
         1});
  }
  for (int N : {100, 1000})
    for (int L : {1, 2}) {
      int Ci = L == 1 ? 1 : 12, M = L == 1 ? 12 : 24, H = L == 1 ? 72 : 33, K = 7, HO = H - 6,
          n = HO * HO, k = Ci * 49;
      char s[99];
      auto nm = [&](const char* v) {
        sprintf(s, "%s layer=%d N=%d", v, L, N);
        return std::string(s);
      };
      int wg = (HO + 15) / 16;
      auto up = [](int a, int b) { return (a + b - 1) / b; };
      cases.push_back(
          {nm("layer_base"),
           [=] { base<<<dim3(N, M, wg * wg), dim3(16, 16)>>>(C, A, B, M, Ci, H, H, K); }, 1});
      int one = prof ? 2 : N;
      cases.push_back({nm("unroll+mm32"),
                       [=] {
                         for (int i = 0; i < one; i++) {
                           unroll<<<up(Ci * n, 1024), 1024>>>(Ci, H, H, K,
                                                              A + (size_t)i * Ci * H * H, U);
                           mm<32><<<dim3(up(n, 32), up(M, 32)), dim3(32, 32)>>>(
                               B, U, C + (size_t)i * M * n, M, k, n);
                         }
                       },
                       N});
      cases.push_back({nm("unroll+mmconst32"),
                       [=] {
                         for (int i = 0; i < one; i++) {
                           unroll<<<up(Ci * n, 1024), 1024>>>(Ci, H, H, K,
                                                              A + (size_t)i * Ci * H * H, U);
                           mmc<32><<<dim3(up(n, 32), up(M, 32)), dim3(32, 32)>>>(
                               U, C + (size_t)i * M * n, M, k, n);
                         }
                       },
                       N});
      cases.push_back({nm("fused32"),
                       [=] {
                         for (int i = 0; i < one; i++)
                           fused<32, true><<<dim3(up(n, 32), up(M, 32)), dim3(32, 32)>>>(
                               B, A + (size_t)i * Ci * H * H, C + (size_t)i * M * n, M, Ci, H, H,
                               K);
                       },
                       N});
      cases.push_back({nm("layer_batched24"),
                       [=] {
                         fused<24, true><<<dim3(up(n, 24), up(M, 24), N), dim3(24, 24)>>>(
                             B, A, C, M, Ci, H, H, K);
                       },
                       1});
      cases.push_back({nm("layer_batched16"),
                       [=] {
                         fused<16, true><<<dim3(up(n, 16), up(M, 16), N), dim3(16, 16)>>>(
                             B, A, C, M, Ci, H, H, K);
                       },
                       1});
      cases.push_back({nm("batchz24rolled"),
                       [=] {
                         fused<24, false><<<dim3(up(n, 24), up(M, 24), N), dim3(24, 24)>>>(
                             B, A, C, M, Ci, H, H, K);
                       },
                       1});
      cases.push_back({nm("layer_shared"),
                       [=] {
                         shconv<<<dim3(N, M, wg * wg), dim3(16, 16), (22 * 22 + 49) * 4>>>(
                             C, A, B, M, Ci, H, H, K);
                       },
                       1});
    }
  cudaEvent_t e0, e1;
  cudaEventCreate(&e0);
  cudaEventCreate(&e1);
  if (prof) {
    for (auto& c : cases) {
      if (c.name.find("N=1000") != std::string::npos) continue;
      c.go();
    }
    cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorString(cudaGetLastError()));
    return 0;
  }
  for (auto& c : cases) {
    c.go();
    OK(cudaDeviceSynchronize());
    float t0;
    cudaEventRecord(e0);
    c.go();
    cudaEventRecord(e1);
    cudaEventSynchronize(e1);
    cudaEventElapsedTime(&t0, e0, e1);
    int in = std::max(1, std::min(50, (int)(3.f / t0)));
    std::vector<float> v;
    for (int r = 0; r < 9; r++) {
      cudaEventRecord(e0);
      for (int i = 0; i < in; i++) c.go();
      cudaEventRecord(e1);
      cudaEventSynchronize(e1);
      float t;
      cudaEventElapsedTime(&t, e0, e1);
      v.push_back(t / in * 1000);
    }
    std::sort(v.begin(), v.end());
    OK(cudaGetLastError());
    printf("%s,%.3f\n", c.name.c_str(), v[4]);
  }
}
