#include "workloads/load_traits.h"

namespace routesim::workloads {

void describe(Describer& d, GoodputConstraints& t) {
  const RealRange seconds{.min = 0, .max = 1e9};
  field(d, {"ttft", "Seconds to the first token."}, t.ttft, seconds);
  field(d, {"tpot", "Seconds per output token after the first."}, t.tpot, seconds);
  field(d, {"itl", "Seconds between tokens."}, t.itl, seconds);
  field(d, {"ntpot", "Seconds of latency per output token."}, t.ntpot, seconds);
  field(d, {"request_latency", "Seconds to the last token."}, t.request_latency, seconds);
}

}  // namespace routesim::workloads
