#include "tools/cli/replications.h"

#include "base/scalar_parse.h"
#include "tools/study/parallel.h"
#include "tools/study/replicate.h"

namespace routesim::tools {

namespace {

std::optional<std::size_t> whole_number(const OptionValues& options, const std::string& name,
                                        std::size_t fallback, std::int64_t most,
                                        std::string& error) {
  if (!options.has(name)) return fallback;
  const auto node = ConfigNode::make_scalar(options.get(name), ConfigNode::Style::kUntyped, {});
  const Parsed<std::int64_t> value = parse_integer(*node, IntRange{1, most});
  if (value.value) return static_cast<std::size_t>(*value.value);
  error = "--" + name + " " + value.message;
  return std::nullopt;
}

}  // namespace

bool parse_replications(const OptionValues& options, ReplicationRequest& request,
                        std::string& error) {
  const sim::StoppingRule rule;
  const std::size_t fallback = options.has("until") ? rule.limit : 1;
  const auto replications = whole_number(options, "replications", fallback, 100'000, error);
  const auto jobs = whole_number(options, "jobs", sim::default_jobs(), 1024, error);
  if (!replications || !jobs) return false;
  request.replications = *replications;
  request.jobs = *jobs;
  if (!options.has("until")) return true;
  Parsed<UntilRule> until = parse_until(options.get("until"));
  if (!until.value) {
    error = "--until " + until.message + "; " + until.hint;
    return false;
  }
  if (*replications < 2) {
    error = "--until needs --replications of at least 2, its limit";
    return false;
  }
  request.until = std::move(until.value);
  request.until->rule.limit = *replications;
  return true;
}

}  // namespace routesim::tools
