#include "workloads/mix/mixed_load.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/rng.h"
#include "workloads/traces/text_scan.h"

namespace routesim::workloads {

namespace {

// Prompt ids of a load are small, but for the number of their adapter, which begins at bit 56
// (adapter_traffic.cpp).
constexpr int kPromptIdBits = 48;
/// Sessions are small numbers, or hashes of 64 bits: a sum can be taken back, and stays readable.
constexpr std::uint64_t kSessionsOfPart = 1'000'000'000'000;

class MixedLoad final : public LoadGenerator {
 public:
  explicit MixedLoad(std::vector<MixedPart> parts)
      : parts_(std::move(parts)), pool_prompts_(parts_.size()) {
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      first_stage_.push_back(static_cast<std::uint32_t>(stages_.size()));
      for (StageInfo stage : parts_[p].load->stages()) {
        stage.name.insert(0, parts_[p].name + "/");
        stage.part = static_cast<std::int32_t>(p);
        stages_.push_back(std::move(stage));
      }
    }
  }

  const std::vector<StageInfo>& stages() const override { return stages_; }

  SimTime next_action() const override {
    SimTime next = SimTime::max();
    for (const MixedPart& part : parts_) next = std::min(next, part.load->next_action());
    return next;
  }

  void advance(SimTime now, std::vector<Request>& out) override {
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      LoadGenerator& load = *parts_[p].load;
      if (load.next_action() > now) continue;
      std::size_t i = out.size();
      load.advance(now, out);
      for (; i < out.size(); ++i) make_own(out[i], p);
    }
  }

  void on_completed(const Request& request, Outcome outcome, SimTime now) override {
    const std::size_t p = request.traffic_class;
    Request as_sent = request;
    as_sent.id = RequestId(request.id.value() / kMostMixed);
    as_sent.stage = StageId(request.stage.value() - first_stage_[p]);
    as_sent.traffic_class = 0;
    if (request.session != 0) as_sent.session -= p * kSessionsOfPart;
    parts_[p].load->on_completed(as_sent, outcome, now);
  }

  bool finished() const override {
    return std::all_of(parts_.begin(), parts_.end(),
                       [](const MixedPart& part) { return part.load->finished(); });
  }

  std::vector<std::string> notes() const override {
    std::vector<std::string> out;
    for (const MixedPart& part : parts_)
      for (const std::string& note : part.load->notes()) out.push_back(part.name + ": " + note);
    return out;
  }

 private:
  void make_own(Request& request, std::size_t p) {
    // A stage that finds its rate has it when it sends.
    const StageInfo& own = parts_[p].load->stages()[request.stage.value()];
    request.stage = StageId(request.stage.value() + first_stage_[p]);
    StageInfo& stage = stages_[request.stage.value()];
    stage.requested_rate = own.requested_rate;
    stage.requests = own.requests;
    request.id = RequestId(request.id.value() * kMostMixed + p);
    if (request.session != 0) request.session += p * kSessionsOfPart;
    request.traffic_class = static_cast<std::uint32_t>(p);
    request.priority = parts_[p].priority;
    if (p > 0) request.prompt = own_prompt(*request.prompt, p);
  }

  std::shared_ptr<const Prompt> own_prompt(const Prompt& prompt, std::size_t p) {
    if (prompt.reusable)
      if (const auto known = pool_prompts_[p].find(prompt.id); known != pool_prompts_[p].end())
        return known->second;
    auto copy = std::make_shared<Prompt>(prompt);
    copy->id += static_cast<std::uint64_t>(p) << kPromptIdBits;
    if (prompt.reusable) pool_prompts_[p].emplace(prompt.id, copy);
    return copy;
  }

  using Prompts = std::unordered_map<std::uint64_t, std::shared_ptr<const Prompt>>;
  std::vector<MixedPart> parts_;
  std::vector<std::uint32_t> first_stage_;  ///< By part.
  std::vector<StageInfo> stages_;
  std::vector<Prompts> pool_prompts_;  ///< By part, then by the load's own id.
};

}  // namespace

std::uint64_t seed_of_part(std::uint64_t seed, std::string_view name) {
  return mix64(seed, hash_bytes(name));
}

std::unique_ptr<LoadGenerator> mix_loads(std::vector<MixedPart> parts) {
  ROUTESIM_CHECK(!parts.empty() && parts.size() <= kMostMixed, "a mix of so many loads");
  return std::make_unique<MixedLoad>(std::move(parts));
}

}  // namespace routesim::workloads
