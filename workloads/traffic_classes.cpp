#include "workloads/traffic_classes.h"

#include <cmath>
#include <limits>
#include <set>

#include "base/config_node.h"
#include "base/rng.h"

namespace routesim::workloads {

void describe(Describer& d, TrafficClass& t) {
  field(d, {"name", "Name of the class in results.", true}, t.name);
  field(d,
        {"share",
         "Its share of the sessions, or of the requests of a load without sessions. The shares of "
         "all classes add up to 1.",
         true},
        t.share, RealRange{.min = 0, .max = 1});
  describe_treatment(d, t);
}

void describe_treatment(Describer& d, TrafficClass& t) {
  constexpr IntRange kInt32{std::numeric_limits<std::int32_t>::min(),
                            std::numeric_limits<std::int32_t>::max()};
  field(d,
        {"objective",
         "Priority of the InferenceObjective that its requests name. Flow control serves higher "
         "ones first; a saturated endpoint picker may refuse negative ones."},
        t.objective, kInt32);
  field(d,
        {"priority",
         "The request field `priority` of vLLM: smaller ones first, with engine.scheduling_policy "
         "`priority`."},
        t.priority, kInt32);
  field(d, {"user", "The request field `user`, for routers that tell users apart."}, t.user);
  field(d,
        {"headers",
         "HTTP headers of its requests, for example x-llm-d-inference-fairness-id for the tenant "
         "or x-llm-d-slo-ttft-ms for its goal."},
        t.headers);
}

std::vector<std::pair<std::string, std::string>> headers_of(const Document& headers) {
  std::vector<std::pair<std::string, std::string>> out;
  if (headers.root == nullptr) return out;
  for (const ConfigNode::Member& member : headers.root->members())
    if (member.value->is_scalar()) out.emplace_back(member.key, member.value->text());
  return out;
}

void check_class_names(const std::vector<TrafficClass>& classes, const std::string& path,
                       Diagnostics& out) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const TrafficClass& c = classes[i];
    const std::string at = path + "[" + std::to_string(i) + "]";
    if (c.name.empty()) out.error({}, at + ".name", "must not be empty");
    if (!names.insert(c.name).second) out.error({}, at + ".name", "is listed twice");
    if (!c.headers.empty() && (c.headers.root == nullptr || !c.headers.root->is_map()))
      out.error({}, at + ".headers", "must be a map of names to texts");
    else if (c.headers.root != nullptr &&
             headers_of(c.headers).size() != c.headers.root->members().size())
      out.error({}, at + ".headers", "every value must be a text");
  }
}

void check_traffic_classes(const std::vector<TrafficClass>& classes, const std::string& path,
                           Diagnostics& out) {
  constexpr double kRounding = 1e-6;
  check_class_names(classes, path, out);
  double sum = 0;
  for (const TrafficClass& c : classes) sum += c.share;
  if (!classes.empty() && std::abs(sum - 1) > kRounding)
    out.error({}, path, "shares must add up to 1 (got " + std::to_string(sum) + ")");
}

namespace {

class ClassLoad final : public ChangedLoad {
 public:
  ClassLoad(std::unique_ptr<LoadGenerator> load, const std::vector<TrafficClass>& classes,
            std::uint64_t seed)
      : ChangedLoad(std::move(load)), seed_(seed) {
    double sum = 0;
    for (const TrafficClass& c : classes) {
      bounds_.push_back(sum += c.share);
      priorities_.push_back(static_cast<std::int32_t>(c.priority));
    }
  }

  const Request* upcoming(std::size_t i) const override { return load().upcoming(i); }

 private:
  void change(Request& request) override {
    request.traffic_class = class_of(request);
    request.priority = priorities_[request.traffic_class];
  }

  std::uint32_t class_of(const Request& request) const {
    // Sessions and requests are numbered apart, so an odd and an even number keep them apart.
    const std::uint64_t entity =
        request.session != 0 ? 2 * request.session + 1 : 2 * request.id.value();
    const double draw = RandomStream(seed_, Stream::kTrafficClasses, entity).uniform();
    std::uint32_t i = 0;
    while (i + 1 < bounds_.size() && draw >= bounds_[i]) ++i;
    return i;
  }

  std::uint64_t seed_;
  std::vector<double> bounds_;  ///< Sums of the shares up to each class.
  std::vector<std::int32_t> priorities_;
};

}  // namespace

std::unique_ptr<LoadGenerator> with_traffic_classes(std::unique_ptr<LoadGenerator> load,
                                                    const std::vector<TrafficClass>& classes,
                                                    std::uint64_t seed) {
  return std::make_unique<ClassLoad>(std::move(load), classes, seed);
}

}  // namespace routesim::workloads
