#include "tools/cli/heap.h"

#include <cstdint>
#include <new>

#ifdef __GLIBC__
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace routesim::tools {

#ifdef __GLIBC__

namespace {

constexpr int kLargestInHeap = 32 << 20;  // glibc takes no more
constexpr int kKept = 1 << 30;
/// Address space for huge pages, not memory.
constexpr int kHugeArea = 512 << 20;
constexpr int kGrowth = 4 << 20;
constexpr std::uintptr_t kHugePage = std::uintptr_t{2} << 20;

std::uintptr_t heap_end() { return reinterpret_cast<std::uintptr_t>(sbrk(0)); }

}  // namespace

void keep_heap() {
  if (mallopt(M_MMAP_THRESHOLD, kLargestInHeap) == 0) return;
  mallopt(M_TRIM_THRESHOLD, kKept);
  // One allocation makes the heap grow by all that is to be backed by huge pages.
  mallopt(M_TOP_PAD, kHugeArea);
  const std::uintptr_t before = heap_end();
  void* const grows = ::operator new(kGrowth, std::nothrow);
  const std::uintptr_t begin = (before + kHugePage - 1) & ~(kHugePage - 1);
  if (grows != nullptr && heap_end() > begin)
    madvise(reinterpret_cast<void*>(begin), heap_end() - begin, MADV_HUGEPAGE);
  ::operator delete(grows);
  mallopt(M_TOP_PAD, kGrowth);
}

#else

void keep_heap() {}

#endif

}  // namespace routesim::tools
