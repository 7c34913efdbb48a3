#include "workloads/adapter_traffic.h"

#include <cmath>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/rng.h"

namespace routesim::workloads {

void describe(Describer& d, LoraSplit& t) {
  field(d, {"name", "Adapter, or the model itself for requests without one.", true}, t.name);
  field(d, {"split", "Its share of the requests.", true}, t.split, RealRange{.min = 0, .max = 1});
}

void check_lora_split(const std::vector<LoraSplit>& split, const std::string& path,
                      Diagnostics& out) {
  constexpr double kRounding = 1e-6;
  double sum = 0;
  std::set<std::string> names;
  for (std::size_t i = 0; i < split.size(); ++i) {
    const std::string at = path + "[" + std::to_string(i) + "].name";
    if (split[i].name.empty()) out.error({}, at, "must not be empty");
    if (!names.insert(split[i].name).second) out.error({}, at, "is listed twice");
    sum += split[i].split;
  }
  if (std::abs(sum - 1) > kRounding) out.error({}, path, "shares must add up to 1");
}

namespace {

class AdapterLoad final : public ChangedLoad {
 public:
  AdapterLoad(std::unique_ptr<LoadGenerator> load, AdapterTraffic traffic, std::uint64_t seed)
      : ChangedLoad(std::move(load)),
        traffic_(std::move(traffic)),
        seed_(seed),
        sent_(stages().size()) {}

 private:
  void change(Request& request) override {
    const std::uint32_t adapter = choose(request);
    if (adapter != 0) request.prompt = for_adapter(*request.prompt, adapter);
  }

  std::uint32_t choose(const Request& request) {
    const auto stage = static_cast<std::size_t>(request.stage.value());
    const StageInfo& info = stages()[stage];
    if (info.is_preparation || (traffic_.warms_up_base && !info.reported)) return 0;
    const std::vector<AdapterShare>& shares = traffic_.shares;
    if (traffic_.assignment == LoraAssignment::kRoundRobin)
      return shares[sent_[stage]++ % shares.size()].adapter;
    double left = RandomStream(seed_, Stream::kAdapters, request.id.value()).uniform();
    for (const AdapterShare& s : shares)
      if ((left -= s.share) < 0) return s.adapter;
    return shares.back().adapter;  // what rounding left
  }

  // Ids of the load itself are small: those of its prompts under adapters lie above them all.
  std::shared_ptr<const Prompt> for_adapter(const Prompt& prompt, std::uint32_t adapter) {
    constexpr int kIdBits = 56;
    const std::uint64_t id = prompt.id | static_cast<std::uint64_t>(adapter) << kIdBits;
    if (prompt.reusable) {
      const auto known = known_.find(id);
      if (known != known_.end()) return known->second;
    }
    auto copy = std::make_shared<Prompt>(prompt);
    copy->id = id;
    copy->adapter = adapter;
    if (prompt.reusable) known_.emplace(id, copy);
    return copy;
  }

  AdapterTraffic traffic_;
  std::uint64_t seed_;
  std::vector<std::size_t> sent_;  ///< By stage.
  std::unordered_map<std::uint64_t, std::shared_ptr<const Prompt>> known_;
};

}  // namespace

std::unique_ptr<LoadGenerator> with_adapters(std::unique_ptr<LoadGenerator> load,
                                             AdapterTraffic traffic, std::uint64_t seed) {
  return std::make_unique<AdapterLoad>(std::move(load), std::move(traffic), seed);
}

}  // namespace routesim::workloads
