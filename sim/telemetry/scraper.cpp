#include "sim/telemetry/scraper.h"

#include <algorithm>
#include <utility>

namespace routesim::sim {

Scraper::Scraper(const RunPlan& plan, const Endpoints& endpoints,
                 const std::vector<std::unique_ptr<Replica>>& replicas, Also also)
    : plan_(plan),
      endpoints_(endpoints),
      also_(also),
      next_flush_(endpoints.rows()),
      up_since_(endpoints.rows()),
      works_since_(endpoints.rows()) {
  for (std::uint32_t row = 0; row < endpoints.rows(); ++row) {
    const std::uint32_t first = endpoints.first(row);
    const EndpointHome& home = endpoints[first];
    next_.push_back(replicas[home.replica]->next_scrape(home.rank, SimTime::from_ns(-1)));
    order_.push_back(row);
    first_.push_back(static_cast<std::uint32_t>(sources_.size()));
    for (std::size_t e = first; e < first + endpoints.ranks(row); ++e) {
      const EndpointHome& at = endpoints[e];
      const std::int64_t blocks = plan.pools[at.pool].rules.num_gpu_blocks - 1;
      sources_.push_back({.replica = replicas[at.replica].get(),
                          .rank = at.rank,
                          .usable_blocks = static_cast<double>(blocks)});
    }
  }
  first_.push_back(static_cast<std::uint32_t>(sources_.size()));
  std::stable_sort(order_.begin(), order_.end(),
                   [this](std::uint32_t a, std::uint32_t b) { return next_[a] < next_[b]; });
}

// Requests of the ranks are summed, cache use is the mean.
void Scraper::read_row(std::uint32_t row, SimTime now, policies::EndpointTable& table) {
  const Duration interval = plan_.scenario.routing.scrape_interval.value_or(kScrapeInterval);
  SimTime at = next_[row];
  if (now - at >= interval) at = at + interval * ((now - at).ns() / interval.ns());
  next_[row] = at + interval;
  if (at < works_since_[row] && also_.forgets) table.forget_metrics(EndpointId(row));
  if (at < up_since_[row] || at < works_since_[row]) return;
  double waiting = 0, running = 0, usage = 0;
  AdapterGauges adapters;
  const std::uint32_t first = first_[row], end = first_[row + 1];
  for (std::uint32_t i = first; i < end; ++i) {
    const Source& s = sources_[i];
    const Gauges g = s.replica->scrape(s.rank, at, now);
    waiting += static_cast<double>(g.waiting);
    running += static_cast<double>(g.running);
    usage += 1.0 - static_cast<double>(g.free_blocks) / s.usable_blocks;
    if (also_.adapters) adapters.add(g.adapters);
  }
  if (end - first > 1) usage /= static_cast<double>(end - first);
  table.set_metrics(EndpointId(row), waiting, running, usage, at);
  write_adapters(row, adapters, table);
  if (also_.pools) write_pool(row, waiting / static_cast<double>(end - first), usage, at, table);
}

// The router of a cluster publishes the means over its servers every five seconds
// (refresh-prometheus-metrics-interval in llm-d-router's pkg/epp/server/options.go).
void Scraper::write_pool(std::uint32_t row, double waiting, double usage, SimTime at,
                         policies::EndpointTable& table) {
  constexpr Duration kFlush = Duration::seconds(5);
  if (at < next_flush_[row]) return;
  next_flush_[row] = SimTime::zero() + kFlush * (at.ns() / kFlush.ns() + 1);
  table.set_attribute(std::string(policies::kPoolQueueAttribute), EndpointId(row), waiting);
  table.set_attribute(std::string(policies::kPoolKvAttribute), EndpointId(row), usage);
}

// With many servers none is in the processor's caches when its turn comes. Due servers are fetched
// together, and then what they refer to, instead of one after another.
void Scraper::prefetch(SimTime now) {
  due_.clear();
  std::size_t turn = head_;
  while (due_.size() < kFetched && next_[order_[turn]] <= now) {
    due_.push_back(sources_[first_[order_[turn]]]);
    due_.back().replica->prefetch();
    turn = turn + 1 == order_.size() ? 0 : turn + 1;
  }
  for (const Source& s : due_) s.replica->prefetch(s.rank);
  for (const Source& s : due_) s.replica->scheduler(s.rank).prefetch_crossings();
}

void Scraper::read(SimTime now, policies::EndpointTable& table) {
  if (order_.size() > 2 * kFetched) prefetch(now);
  std::size_t read = 0;
  for (; read < order_.size(); ++read) {
    const std::uint32_t row = order_[head_];
    if (next_[row] > now) break;
    read_row(row, now, table);
    head_ = head_ + 1 == order_.size() ? 0 : head_ + 1;
  }
  if (read < order_.size()) return;
  // After a pause of more than an interval the cycle goes on at another place.
  const auto first =
      std::min_element(order_.begin(), order_.end(),
                       [this](std::uint32_t a, std::uint32_t b) { return next_[a] < next_[b]; });
  head_ = static_cast<std::size_t>(first - order_.begin());
}

// Since its stats are kept by adapter, vLLM names each that has any request among the running and
// among the waiting ones (llm-d/llm-d-router#2605). A server without a step has said nothing yet.
void Scraper::write_adapters(std::uint32_t row, const AdapterGauges& gauges,
                             policies::EndpointTable& table) const {
  if (!also_.adapters || gauges.slots == 0) return;
  const ResolvedPool& pool = plan_.pools[endpoints_[endpoints_.first(row)].pool];
  AdapterSet active = gauges.running, waiting = gauges.waiting;
  if (from_2026(pool.config.engine.preset)) active = waiting = active | waiting;
  policies::LoraState state;
  for (std::uint32_t a = 1; a <= plan_.adapters.size(); ++a) {
    if ((active & adapter_bit(a)) != 0) state.active.push_back(plan_.adapters[a - 1]);
    if ((waiting & adapter_bit(a)) != 0) state.waiting.push_back(plan_.adapters[a - 1]);
  }
  state.max_active = gauges.slots;
  table.set_lora(EndpointId(row), std::move(state));
}

}  // namespace routesim::sim
