#include "policies/balancers/balancers.h"

#include "base/scalar_parse.h"

namespace routesim::policies {
namespace {

/// Reports numbers out of their bounds.
class BoundsReader final : public Describer {
 public:
  BoundsReader(std::string path, std::vector<SettingFault>& faults)
      : path_(std::move(path)), faults_(faults) {}
  void boolean(const Field&, bool&) override {}
  void integer(const Field& f, std::int64_t& v, const IntRange& r) override {
    if (v < r.min || v > r.max) add(f, std::to_string(v), range_text(r));
  }
  void real(const Field& f, double& v, const RealRange& r) override {
    const bool low = v > r.min || (v == r.min && !r.min_open);
    const bool high = v < r.max || (v == r.max && !r.max_open);
    if (!((low && high) || (r.allow_infinity && v > r.max && v * 0 != 0)))
      add(f, number_text(v), range_text(r));
  }
  void text(const Field&, std::string&) override {}
  void duration(const Field& f, Duration& v, const DurationRange& r) override {
    if (v < r.min || v > r.max) add(f, duration_text(v), range_text(r));
  }
  void choice(const Field& f, std::size_t& index,
              std::span<const std::string_view> names) override {
    if (index >= names.size()) add(f, std::to_string(index), "one of its names");
  }
  void document(const Field&, Document&) override {}
  void object(const Field& f, const std::function<void(Describer&)>& members) override {
    BoundsReader inner(path_of(f), faults_);
    members(inner);
  }
  void list(const Field& f, ListAccess& items) override {
    for (std::size_t i = 0; i < items.size(); ++i) {
      element_ = path_of(f) + "[" + std::to_string(i) + "]";
      items.visit(i, *this);
    }
    element_.clear();
  }
  void optional(const Field& f, OptionalAccess& value) override {
    if (!value.engaged()) return;
    element_ = path_of(f);
    value.visit(*this);
    element_.clear();
  }

 private:
  /// An element of a list and an optional value have no name of their own.
  std::string path_of(const Field& f) const {
    if (f.name.empty()) return element_;
    return path_.empty() ? std::string(f.name) : path_ + "." + std::string(f.name);
  }
  void add(const Field& f, const std::string& got, const std::string& bounds) {
    faults_.push_back({path_of(f), "must be " + bounds + " (got " + got + ")", ""});
  }
  std::string path_, element_;
  std::vector<SettingFault>& faults_;
};

void add_release_faults(const BalancerRow& row, const BalancerSettings& settings,
                        std::vector<SettingFault>& faults) {
  if (row.releases.empty()) return;
  const std::string key = std::string(row.section) + ".release";
  const std::string_view stated = row.stated_release(settings);
  const auto release = find_release(row.releases, stated);
  if (!release)
    faults.push_back(
        {key, "is no release of " + std::string(row.product) + " (got " + std::string(stated) + ")",
         "a version; the rules changed with " + known_releases(row.releases)});
  else if (!row.since.empty() && *release < *find_release(row.releases, row.since))
    faults.push_back({key,
                      std::string(row.name) + " is in no release before " + std::string(row.since) +
                          " (got " + std::string(stated) + ")",
                      ""});
}

}  // namespace

void describe(Describer& d, BalancerSettings& s) {
  describe(d, s.kubernetes);
  describe(d, s.kubeai);
  std::apply([&](auto... family) { (family.describe_settings(d, s), ...); }, kFamilies);
}

std::optional<BalancerKind> find_balancer(std::string_view name) {
  for (std::size_t i = 0; i < kBalancers.size(); ++i)
    if (kBalancers[i].name == name) return static_cast<BalancerKind>(i);
  return std::nullopt;
}

std::string release_note(BalancerKind kind, const BalancerSettings& settings) {
  const BalancerRow& row = balancer_row(kind);
  if (row.releases.empty()) return {};
  const std::string stated(row.stated_release(settings));
  const auto at = find_release(row.releases, stated);
  if (!at) return {};
  const ReleaseRow& rules = row.releases[*at];
  std::string text =
      std::string(row.product) + " " + (stated.empty() ? std::string(rules.version) : stated);
  if (stated.empty()) text += ", the newest release known";
  if (!stated.empty() && stated != rules.version)
    text += ", by the rules of " + std::string(rules.version);
  return text + " (" + std::string(rules.rules) + ")";
}

std::vector<SettingFault> setting_faults(BalancerKind kind, const BalancerSettings& settings) {
  std::vector<SettingFault> faults;
  BoundsReader bounds("", faults);
  BalancerSettings copy = settings;
  describe(bounds, copy);
  const BalancerRow& row = balancer_row(kind);
  add_release_faults(row, settings, faults);
  std::apply([&](auto... family) { (family.add_faults(settings, row, faults), ...); }, kFamilies);
  return faults;
}

std::unique_ptr<Balancer> make_balancer(BalancerKind kind, const BalancerSettings& settings,
                                        std::uint64_t seed, std::uint64_t entity,
                                        Diagnostics& diagnostics) {
  const BalancerRow& row = balancer_row(kind);
  if (row.make == nullptr) {
    diagnostics.error({}, "balancer", std::string(row.name) + " is made by someone else",
                      "a scheduler (make_scheduler) or the simulator");
    return nullptr;
  }
  const std::vector<SettingFault> faults = setting_faults(kind, settings);
  for (const SettingFault& fault : faults)
    diagnostics.error({}, fault.key, fault.message, fault.hint);
  if (!faults.empty()) return nullptr;
  return row.make(settings, RandomStream(seed, Stream::kBalancer, entity));
}

std::unique_ptr<Balancer> make_balancer(BalancerKind kind, const BalancerSettings& settings,
                                        std::uint64_t seed, std::uint64_t entity) {
  Diagnostics unsaid;
  return make_balancer(kind, settings, seed, entity, unsaid);
}

}  // namespace routesim::policies
