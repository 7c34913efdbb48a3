// Measures copies of scattered KV blocks between pinned host memory and GPU memory, and prints
// scenarios/measured/gpu_kernels/copies.csv. Build: nvcc -O2 -std=c++20 -arch=sm_90 copies.cu
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#define CHECK(call)                                                                   \
  do {                                                                                \
    const cudaError_t e = (call);                                                     \
    if (e != cudaSuccess) {                                                           \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e)); \
      std::exit(1);                                                                   \
    }                                                                                 \
  } while (false)

using Clock = std::chrono::steady_clock;
static double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

// The GPU's multiprocessors read or write pinned host memory themselves, as LMCache's kernels do.
__global__ void gather(const char* const* src, char* const* dst, std::size_t bytes, int blocks) {
  const std::size_t words = bytes / sizeof(uint4);
  for (int b = blockIdx.x; b < blocks; b += gridDim.x) {
    const uint4* s = reinterpret_cast<const uint4*>(src[b]);
    uint4* d = reinterpret_cast<uint4*>(dst[b]);
    for (std::size_t i = threadIdx.x; i < words; i += blockDim.x) d[i] = s[i];
  }
}

struct Side {
  char* host;
  char* device;
  std::vector<std::size_t> host_at, device_at;
  const char** src_list;
  char** dst_list;
  cudaStream_t stream;
};

constexpr std::size_t kPool = std::size_t{2} << 30;

// Puts the blocks of the next round into random places on both sides.
static void scatter(Side& side, std::size_t bytes, int blocks, bool to_device, unsigned seed) {
  const int slots = static_cast<int>(kPool / bytes);
  std::vector<int> order(slots);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(seed);
  std::shuffle(order.begin(), order.end(), random);
  side.host_at.assign(blocks, 0);
  for (int i = 0; i < blocks; ++i) side.host_at[i] = order[i % slots] * bytes;
  std::shuffle(order.begin(), order.end(), random);
  side.device_at.assign(blocks, 0);
  for (int i = 0; i < blocks; ++i) side.device_at[i] = order[i % slots] * bytes;
  std::vector<const char*> src(blocks);
  std::vector<char*> dst(blocks);
  for (int i = 0; i < blocks; ++i) {
    char* h = side.host + side.host_at[i];
    char* d = side.device + side.device_at[i];
    src[i] = to_device ? h : d;
    dst[i] = to_device ? d : h;
  }
  CHECK(cudaMemcpy(side.src_list, src.data(), blocks * sizeof(char*), cudaMemcpyDefault));
  CHECK(cudaMemcpy(side.dst_list, dst.data(), blocks * sizeof(char*), cudaMemcpyDefault));
}

// Queues all copies of a side; returns the seconds that queueing took.
static double queue(Side& side, const std::string& method, std::size_t bytes, int blocks,
                    bool to_device, int grid) {
  const auto start = Clock::now();
  if (method == "async") {
    for (int i = 0; i < blocks; ++i) {
      char* h = side.host + side.host_at[i];
      char* d = side.device + side.device_at[i];
      if (to_device)
        CHECK(cudaMemcpyAsync(d, h, bytes, cudaMemcpyHostToDevice, side.stream));
      else
        CHECK(cudaMemcpyAsync(h, d, bytes, cudaMemcpyDeviceToHost, side.stream));
    }
  } else if (method == "batch") {
    std::vector<const void*> src(blocks);
    std::vector<const void*> dst(blocks);
    std::vector<std::size_t> sizes(blocks, bytes);
    for (int i = 0; i < blocks; ++i) {
      char* h = side.host + side.host_at[i];
      char* d = side.device + side.device_at[i];
      src[i] = to_device ? h : d;
      dst[i] = to_device ? d : h;
    }
    cudaMemcpyAttributes attributes{};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    std::size_t first = 0;
    CHECK(cudaMemcpyBatchAsync(dst.data(), src.data(), sizes.data(), blocks, &attributes, &first, 1,
                               side.stream));
  } else {
    gather<<<grid, 512, 0, side.stream>>>(side.src_list, side.dst_list, bytes, blocks);
    CHECK(cudaGetLastError());
  }
  return seconds_since(start);
}

int main() {
  cudaDeviceProp properties{};
  CHECK(cudaGetDeviceProperties(&properties, 0));
  Side up{}, down{};
  for (Side* s : {&up, &down}) {
    CHECK(cudaHostAlloc(&s->host, kPool, cudaHostAllocDefault));
    CHECK(cudaMalloc(&s->device, kPool));
    for (std::size_t i = 0; i < kPool; i += 4096) s->host[i] = static_cast<char>(i >> 12);
    CHECK(cudaMemset(s->device, 7, kPool));
    CHECK(cudaMalloc(&s->src_list, 65536 * sizeof(char*)));
    CHECK(cudaMalloc(&s->dst_list, 65536 * sizeof(char*)));
    CHECK(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
  }
  std::printf("device,direction,method,block_bytes,blocks,gb_per_s,submit_us_per_block\n");
  for (const std::size_t bytes : {8192ul, 16384ul, 32768ul, 65536ul, 131072ul, 262144ul, 524288ul,
                                  1048576ul, 2097152ul, 8388608ul, 33554432ul}) {
    const int blocks = static_cast<int>(std::min<std::size_t>(16384, (512ul << 20) / bytes));
    for (const char* method : {"async", "batch", "kernel-8", "kernel-32", "kernel-132"}) {
      const std::string name = method;
      const int grid = name.starts_with("kernel") ? std::stoi(name.substr(7)) : 0;
      if (grid > 0 && bytes != 16384 && bytes != 131072 && bytes != 2097152) continue;
      for (const char* direction : {"h2d", "d2h", "both"}) {
        const std::string which = direction;
        const bool uses_up = which != "d2h", uses_down = which != "h2d";
        std::vector<double> rate, submit;
        for (unsigned round = 0; round < 6; ++round) {
          if (uses_up) scatter(up, bytes, blocks, true, 2 * round + 1);
          if (uses_down) scatter(down, bytes, blocks, false, 2 * round + 2);
          CHECK(cudaDeviceSynchronize());
          double queued_up = 0, queued_down = 0;
          const auto start = Clock::now();
          std::thread other;
          if (uses_up && uses_down)
            other =
                std::thread([&] { queued_down = queue(down, name, bytes, blocks, false, grid); });
          if (uses_up) queued_up = queue(up, name, bytes, blocks, true, grid);
          if (uses_down && !uses_up) queued_down = queue(down, name, bytes, blocks, false, grid);
          if (other.joinable()) other.join();
          CHECK(cudaDeviceSynchronize());
          const double took = seconds_since(start);
          if (round == 0) continue;  // Warm-up.
          rate.push_back(1.0 * bytes * blocks * (uses_up + uses_down) / took / 1e9);
          submit.push_back(std::max(queued_up, queued_down) / blocks * 1e6);
        }
        std::sort(rate.begin(), rate.end());
        std::sort(submit.begin(), submit.end());
        std::printf("%s,%s,%s,%zu,%d,%.2f,%.3f\n", properties.name, direction, method, bytes,
                    blocks, rate[2], submit[2]);
        std::fflush(stdout);
      }
    }
  }
  // The last copies must have arrived.
  std::vector<char> check(4096);
  CHECK(cudaMemcpy(check.data(), up.device + up.device_at[0], 4096, cudaMemcpyDeviceToHost));
  if (check[0] != up.host[up.host_at[0]]) std::printf("WRONG BYTES\n");
  return 0;
}
