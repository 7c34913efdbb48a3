#include "sim/plan/mix.h"

#include <algorithm>
#include <array>

#include "workloads/mix/mixed_load.h"

namespace routesim::sim {

namespace {

/// Keys that say for one load what a mix says for each of its loads.
void check_keys_beside(const WorkloadConfig& w, Diagnostics& out) {
  const auto refuse = [&out](bool given, const std::string& key, const std::string& hint) {
    if (given) out.error({}, "workload." + key, "stands beside workload.mix", hint);
  };
  const std::string to_part = "give it to the loads of the mix that it is meant for";
  refuse(w.load.tools_given > 0, std::string(load_key(w.load)),
         "put it into the mix as a load with a name");
  refuse(!w.classes.empty(), "classes", "each load of a mix is a class: give it objective or user");
  refuse(w.demand.has_value(), "demand", to_part);
  refuse(w.lora_traffic_split.has_value(), "lora_traffic_split", to_part);
  refuse(w.sheddable_fraction > 0, "sheddable_fraction",
         "give a load of the mix a negative objective");
}

/// Facts that a router has of a load, and that have one value in a run.
void check_alike(const WorkloadConfig& w, Diagnostics& out) {
  for (std::size_t i = 1; i < w.mix.size(); ++i) {
    const workloads::LoadTraits first = traits_of(w.mix[0].load), own = traits_of(w.mix[i].load);
    const std::string names = w.mix[0].name + " and " + w.mix[i].name;
    if (own.streams != first.streams)
      out.error({}, part_path(i), "of the loads " + names + " only one streams its answers",
                "let all loads of a mix stream, or none");
    if (!w.options.bytes_per_token && own.random_text != first.random_text)
      out.warning({}, part_path(i),
                  "of the loads " + names +
                      " only one sends random tokens, which have more bytes of text: routers that "
                      "count bytes take 4 per token for both",
                  "say workload.options.bytes_per_token");
  }
}

}  // namespace

std::string part_path(std::size_t part) { return "workload.mix[" + std::to_string(part) + "]"; }

WorkloadConfig part_alone(const WorkloadConfig& workload, std::size_t part) {
  const MixPart& p = workload.mix[part];
  WorkloadConfig out = workload;
  out.mix.clear();
  out.load = p.load;
  out.demand = p.demand;
  out.hold.reset();  // Of all loads together: see set_load_maker() of resolve.cpp.
  out.lora_traffic_split = p.lora_traffic_split;
  out.rate_scale *= p.rate_scale;
  return out;
}

std::vector<workloads::TrafficClass> classes_of(const WorkloadConfig& workload) {
  if (workload.mix.empty()) return workload.classes;
  return {workload.mix.begin(), workload.mix.end()};
}

std::string class_path(const WorkloadConfig& workload, std::size_t which) {
  return workload.mix.empty() ? "workload.classes[" + std::to_string(which) + "]"
                              : part_path(which);
}

void place_in_mix(const Diagnostics& found, const WorkloadConfig& workload, std::size_t part,
                  Diagnostics& out) {
  constexpr std::array<std::string_view, 3> kWhole = {"cluster.", "routing.", "workload.options"};
  const std::string own = part_path(part), alone = "workload";
  const MixPart& p = workload.mix[part];
  for (Diagnostic d : found.items()) {
    const bool whole = d.path == "warmup_stages" ||
                       (d.path == "workload.rate_scale" && p.rate_scale == 1) ||
                       std::any_of(kWhole.begin(), kWhole.end(),
                                   [&d](std::string_view key) { return d.path.starts_with(key); });
    if (whole)
      d.message += " (load " + p.name + ")";
    else if (d.path.starts_with(alone) && !d.path.starts_with(own))
      d.path.replace(0, alone.size(), own);
    else if (d.where.file.empty() && d.path.empty())
      d.path = own;
    else if (d.where.file.empty() && !d.path.starts_with(own))
      d.path.insert(0, own + "." + std::string(load_key(p.load)) + ".");  // The tool's own key.
    out.add(std::move(d));
  }
  for (const KeyUse& use : found.keys()) out.key(use);
}

void check_mix(const WorkloadConfig& w, Diagnostics& out) {
  check_keys_beside(w, out);
  workloads::check_class_names(classes_of(w), "workload.mix", out);
  if (w.mix.size() > workloads::kMostMixed)
    out.error({}, "workload.mix",
              "has " + std::to_string(w.mix.size()) + " loads, and a run holds at most " +
                  std::to_string(workloads::kMostMixed));
  check_alike(w, out);
}

}  // namespace routesim::sim
