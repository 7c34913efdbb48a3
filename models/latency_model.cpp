#include "models/latency_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace routesim::models {

namespace {

/// A server whose steps take longer, for whatever reason (a GPU that is throttled, a busy host).
class SlowedModel final : public LatencyModel {
 public:
  SlowedModel(std::shared_ptr<const LatencyModel> model, std::int64_t thousandths)
      : model_(std::move(model)), thousandths_(thousandths) {}
  std::int64_t step_ticks(const BatchShape& shape) const override {
    return std::max<std::int64_t>(1, slow(model_->step_ticks(shape)));
  }
  std::int64_t last_stage_ticks(const BatchShape& shape) const override {
    return slow(model_->last_stage_ticks(shape));
  }
  Trust trust(const BatchShape& shape) const override { return model_->trust(shape); }
  std::string provenance() const override { return model_->provenance(); }
  const std::shared_ptr<const LatencyModel>& model() const { return model_; }

 private:
  std::int64_t slow(std::int64_t ticks) const {
    __extension__ using Wide = __int128;
    const Wide longer = static_cast<Wide>(ticks) * thousandths_ / 1000;
    return static_cast<std::int64_t>(std::min<Wide>(longer, Wide{kLongestStepTicks}));
  }
  std::shared_ptr<const LatencyModel> model_;
  std::int64_t thousandths_;
};

}  // namespace

std::shared_ptr<const LatencyModel> slowed(std::shared_ptr<const LatencyModel> model,
                                           double factor) {
  if (const auto* slow = dynamic_cast<const SlowedModel*>(model.get())) model = slow->model();
  const std::int64_t thousandths = std::max<std::int64_t>(1, std::llround(factor * 1000));
  if (thousandths == 1000) return model;
  return std::make_shared<const SlowedModel>(std::move(model), thousandths);
}

std::int64_t widely_shared(const BatchShape& s) {
  if (s.shared_once <= 0) return s.shared_context;
  struct Saving {
    double readers, of_most;
  };
  static constexpr std::array<Saving, 4> kSavings = {{{1, 0}, {2, 0.6}, {4, 0.75}, {8, 1}}};
  const auto shared = static_cast<double>(s.shared_context);
  const double readers = 1 + shared / static_cast<double>(s.shared_once);
  for (std::size_t i = 1; i < kSavings.size(); ++i) {
    const auto [low, from] = kSavings[i - 1];
    const auto [high, to] = kSavings[i];
    if (readers >= high) continue;
    const double share = from + (to - from) * (readers - low) / (high - low);
    return static_cast<std::int64_t>(shared * share);
  }
  return s.shared_context;
}

}  // namespace routesim::models
