#include "workloads/warmed_load.h"

#include <algorithm>
#include <utility>

namespace routesim::workloads {

namespace {

class WarmedLoad final : public LoadGenerator {
 public:
  WarmedLoad(std::unique_ptr<LoadGenerator> load, SimTime warm)
      : load_(std::move(load)), warm_(warm), stages_(load_->stages()) {
    StageInfo steady = stages_.back();
    split_ = StageId(static_cast<std::uint32_t>(stages_.size() - 1));
    stages_.back().name = "warm-up";
    stages_.back().reported = false;
    stages_.back().requests = steady.requests = -1;
    stages_.back().duration_s = std::min(steady.duration_s, warm.to_seconds());
    steady.duration_s -= stages_.back().duration_s;
    stages_.push_back(std::move(steady));
  }

  const std::vector<StageInfo>& stages() const override { return stages_; }
  SimTime next_action() const override { return load_->next_action(); }
  void advance(SimTime now, std::vector<Request>& out) override {
    std::size_t i = out.size();
    load_->advance(now, out);
    for (; i < out.size(); ++i)
      if (out[i].stage == split_ && out[i].due >= warm_) out[i].stage = steady();
  }
  void on_completed(const Request& request, Outcome outcome, SimTime now) override {
    if (request.stage != steady()) return load_->on_completed(request, outcome, now);
    Request as_sent = request;
    as_sent.stage = split_;
    load_->on_completed(as_sent, outcome, now);
  }
  bool finished() const override { return load_->finished(); }
  std::vector<std::string> notes() const override { return load_->notes(); }

 private:
  StageId steady() const { return StageId(split_.value() + 1); }

  std::unique_ptr<LoadGenerator> load_;
  SimTime warm_;
  std::vector<StageInfo> stages_;
  StageId split_;  ///< The stage that is split.
};

}  // namespace

std::unique_ptr<LoadGenerator> with_warm_up(std::unique_ptr<LoadGenerator> load, Duration warm_up) {
  return std::make_unique<WarmedLoad>(std::move(load), SimTime::zero() + warm_up);
}

}  // namespace routesim::workloads
