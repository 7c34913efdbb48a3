#include "tools/cli/run/run_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/ingest/scenario/prepare.h"

namespace routesim::tools {

namespace {

/// A scan may make at most this many variants; a wider table has no reader.
constexpr std::size_t kMostVariants = 256;
/// The bounds of `workload.rate_scale` and of `replicas` in a scenario.
constexpr double kMostScale = 1e6;
constexpr IntRange kReplicas{1, 65'536};

std::vector<std::string> items_of(const std::string& list) {
  std::vector<std::string> items;
  for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = list.find(',', begin);
    items.emplace_back(trimmed(std::string_view(list).substr(
        begin, end == std::string::npos ? std::string::npos : end - begin)));
  }
  return items;
}

void read_rates(Options& options, Scan& scan) {
  for (const std::string& item : items_of(options.get("rate"))) {
    const bool is_factor = item.ends_with('x');
    const std::string number = is_factor ? item.substr(0, item.size() - 1) : item;
    const Parsed<double> value =
        parse_real(number, {.min = 0, .max = kMostScale, .min_open = true});
    if (!value.value) {
      options.fail("--rate takes factors such as 0.5x,2x or requests/s such as 10,20 (got " +
                   printable(item) + ")");
      return;
    }
    scan.rates.push_back({.text = number_text(*value.value) + (is_factor ? "x" : " req/s"),
                          .value = *value.value,
                          .is_factor = is_factor});
    // With a decimal comma, 1,5x would be two rates that nobody asked for.
    if (is_factor != scan.rates.front().is_factor) {
      options.fail("--rate mixes a factor and requests/s: " + scan.rates.front().text + " and " +
                   scan.rates.back().text + " (a decimal point is a point: 1.5x)");
      return;
    }
    const auto same = [&](const ScanRate& rate) { return rate.text == scan.rates.back().text; };
    if (std::ranges::count_if(scan.rates, same) > 1)
      options.fail("--rate has " + scan.rates.back().text + " twice");
  }
}

void read_replicas(Options& options, Scan& scan) {
  std::string list = options.get("replicas");
  if (const std::size_t equals = list.find('='); equals != std::string::npos) {
    scan.pool = list.substr(0, equals);
    list.erase(0, equals + 1);
    if (scan.pool.empty()) options.fail("--replicas has no name of a pool before its =");
  }
  for (const std::string& item : items_of(list)) {
    const Parsed<std::int64_t> value =
        parse_integer(*ConfigNode::make_scalar(item, ConfigNode::Style::kUntyped, {}), kReplicas);
    if (!value.value) {
      options.fail(
          "--replicas takes numbers of servers such as 4,6,8, behind POOL= where there "
          "are several pools (got " +
          printable(item) + ")");
      return;
    }
    if (std::ranges::find(scan.replicas, *value.value) != scan.replicas.end())
      options.fail("--replicas has " + item + " twice");
    scan.replicas.push_back(*value.value);
  }
}

/// The rates of the reported stages, each once.
std::vector<double> rates_of(const LoadedVariant& variant) {
  Diagnostics known;  // The run says what is wrong with its load.
  const std::optional<sim::RunPlan> plan = prepare(variant, known);
  const auto load = plan ? plan->make_load(plan->scenario.seed, known) : nullptr;
  std::vector<double> rates;
  if (load == nullptr) return rates;
  for (const workloads::StageInfo& stage : load->stages())
    if (stage.reported && std::ranges::find(rates, stage.requested_rate) == rates.end())
      rates.push_back(stage.requested_rate);
  return rates;
}

/// The variant, whose load has these rates, at this one. Errors name the option, which the user
/// typed.
bool set_rate(LoadedVariant& variant, const std::vector<double>& rates, const ScanRate& rate,
              Diagnostics& diagnostics) {
  const SourceLocation where = variant.provenance.nearest("workload");
  sim::WorkloadConfig doubled = variant.scenario.workload;
  doubled.rate_scale = 2;
  Diagnostics no_rate;
  (void)sim::at_scaled_rate(doubled, no_rate);
  if (no_rate.has_errors()) {
    diagnostics.error(where, "workload", no_rate.items().front().message,
                      "leave --rate out, and change what the load has instead");
    return false;
  }
  double factor = rate.value;
  if (!rate.is_factor) {
    if (rates.size() != 1 || !(rates.front() > 0) || !std::isfinite(rates.front()) ||
        !variant.scenario.workload.mix.empty()) {
      diagnostics.error(
          where, "workload",
          "has no single rate, so --rate " + number_text(rate.value) + " does not say what to set",
          "multiply the rates of all stages: --rate 2x");
      return false;
    }
    factor = rate.value / rates.front();
  }
  double& scale = variant.scenario.workload.rate_scale;
  scale *= factor;
  if (scale > kMostScale) {
    diagnostics.error({.file = "--rate"}, "",
                      rate.text + " multiplies the rates by more than 1000000");
    return false;
  }
  variant.provenance.record("workload.rate_scale", {.file = "--rate " + rate.text});
  variant.scan_of = variant.scenario.variant;
  variant.scenario.variant += " @ " + rate.text;
  return true;
}

/// The pool whose replicas change; -1 after an error.
std::ptrdiff_t pool_of(const LoadedVariant& variant, const Scan& scan, Diagnostics& diagnostics) {
  const std::vector<sim::PoolConfig>& pools = variant.scenario.cluster.pools;
  if (scan.pool.empty() && pools.size() == 1) return 0;
  std::vector<std::string> names;
  std::string list;
  for (const sim::PoolConfig& pool : pools) {
    names.push_back(pool.name);
    list += (list.empty() ? "" : ", ") + printable(pool.name);
  }
  const auto found = std::ranges::find(names, scan.pool);
  if (found != names.end()) return found - names.begin();
  const SourceLocation where = variant.provenance.nearest("cluster.pools");
  if (scan.pool.empty()) {
    diagnostics.error(where, "cluster.pools",
                      "has several pools, so --replicas does not say which one it means",
                      "write --replicas POOL=4,6 with one of " + list);
  } else {
    const std::string close = nearest(scan.pool, names);
    diagnostics.error(where, "cluster.pools",
                      "has no pool " + in_quotes(scan.pool) + " for --replicas",
                      close.empty() ? "pools: " + list : "did you mean " + close + "?");
  }
  return -1;
}

bool set_replicas(LoadedVariant& variant, const Scan& scan, std::int64_t replicas,
                  Diagnostics& diagnostics) {
  const std::ptrdiff_t pool = pool_of(variant, scan, diagnostics);
  if (pool < 0) return false;
  const auto index = static_cast<std::size_t>(pool);
  const std::string& name = variant.scenario.cluster.pools[index].name;
  for (const sim::FleetEventConfig& e : variant.scenario.events)
    if (e.to == name) {
      diagnostics.error(variant.provenance.nearest("events"), "events",
                        "roll servers out to pool " + printable(name) +
                            ", which has as many as the pool that they leave",
                        "name that pool behind --replicas");
      return false;
    }
  variant.scenario.cluster.pools[index].replicas = replicas;
  variant.provenance.record(child_path(element_path("cluster.pools", index), "replicas"),
                            {.file = "--replicas"});
  variant.fleet_of = variant.scenario.variant;
  variant.scenario.variant += ", " + std::to_string(replicas) +
                              (scan.pool.empty() ? "" : " " + scan.pool) +
                              (replicas == 1 ? " replica" : " replicas");
  return true;
}

void leave_out(LoadedVariant& variant, const std::string& judge, Diagnostics& diagnostics) {
  const auto warn = [&](const char* key) {
    diagnostics.warning(variant.provenance.nearest(key), key,
                        "has no effect on a scan: it is about the scenario as it is written");
  };
  if (!variant.scenario.measured.csv.empty()) warn("measured");
  variant.scenario.measured = {};
  if (variant.scenario.expect.empty()) return;
  if (judge.empty()) return warn("expect");
  // A build server would take the answer for a test that passed.
  diagnostics.error(variant.provenance.nearest("expect"), "expect",
                    "is about the scenario as it is written: a scan judges none, so --output " +
                        judge + " would have nothing to say",
                    "leave --rate and --replicas out, or --output " + judge);
}

}  // namespace

std::vector<OptionSpec> scan_options() {
  return {{"rate", "LIST",
           "Run every variant at these rates: factors such as 0.5x,1x,2x, or requests/s such as "
           "10,20 where the load has one rate."},
          {"replicas", "[POOL=]LIST", "Run every variant with these numbers of servers: 4,6,8."}};
}

Scan read_scan(Options& options) {
  Scan scan;
  if (options.has("rate")) read_rates(options, scan);
  if (options.has("replicas")) read_replicas(options, scan);
  return scan;
}

LoadedScenario scanned(LoadedScenario scenario, const Scan& scan, Diagnostics& diagnostics) {
  if (scan.empty()) return scenario;
  const std::size_t values =
      std::max<std::size_t>(scan.rates.size(), 1) * std::max<std::size_t>(scan.replicas.size(), 1);
  LoadedScenario all{.path = scenario.path, .variants = {}};
  if (values * scenario.variants.size() > kMostVariants) {
    diagnostics.error({.file = "routesim"}, "",
                      fmt::format("the scan has {} runs, at most {} fit into one result",
                                  values * scenario.variants.size(), kMostVariants),
                      "describe it in a file for `routesim sweep`");
    return scenario;
  }
  const std::vector<std::int64_t> as_is = {0};
  const std::vector<ScanRate> no_rate = {{}};
  // A rate in requests/s needs the load, which is made once for each variant.
  const bool needs_rates = !scan.rates.empty() && !scan.rates.front().is_factor;
  std::vector<std::vector<double>> rates;
  for (const LoadedVariant& variant : scenario.variants)
    rates.push_back(needs_rates ? rates_of(variant) : std::vector<double>());
  for (const std::int64_t replicas : scan.replicas.empty() ? as_is : scan.replicas)
    for (const ScanRate& rate : scan.rates.empty() ? no_rate : scan.rates)
      for (std::size_t v = 0; v < scenario.variants.size(); ++v) {
        LoadedVariant variant = scenario.variants[v];
        leave_out(variant, scan.judge, diagnostics);
        if (replicas > 0 && !set_replicas(variant, scan, replicas, diagnostics)) return scenario;
        if (rate.value > 0 && !set_rate(variant, rates[v], rate, diagnostics)) return scenario;
        all.variants.push_back(std::move(variant));
      }
  return all;
}

}  // namespace routesim::tools
