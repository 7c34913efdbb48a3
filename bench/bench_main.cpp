// main() of every benchmark: the heap is as in the program itself.
#include <benchmark/benchmark.h>

#include "tools/cli/heap.h"

int main(int argc, char** argv) {
  routesim::tools::keep_heap();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
