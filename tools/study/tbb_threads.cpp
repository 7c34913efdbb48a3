#include "tools/study/tbb_threads.h"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

namespace routesim::sim {

void run_in_threads(std::size_t threads, void (*work)(void* data), void* data) {
  // More threads than cores are allowed; without the limit raised, TBB would warn on standard error
  // when there are.
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
  tbb::task_arena arena(static_cast<int>(threads));
  arena.execute([&] {
    tbb::parallel_for(
        std::size_t{0}, threads, [&](std::size_t) { work(data); }, tbb::simple_partitioner());
  });
}

}  // namespace routesim::sim
