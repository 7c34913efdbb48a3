#include "tools/study/tune/tune_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "policies/era.h"
#include "tools/ingest/routers/endpoint_picker_yaml.h"
#include "tools/ingest/scenario/file_kind.h"
#include "tools/ingest/scenario/prepare.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/results/goodput.h"
#include "tools/results/text_table.h"
#include "tools/study/experiment/experiment.h"
#include "tools/study/tune/knobs.h"
#include "tools/study/tune/tune_deploy.h"

namespace routesim::tools {

void describe(Describer& d, TuneKnobConfig& k) {
  field(d, {"name", "Name in results; made from the other keys when absent."}, k.name);
  field(d, {"set", "Key that gets the values, as in --set: cluster.pools[vllm].engine.block_size."},
        k.set);
  field(d, {"also", "Further keys that get the same value."}, k.also);
  field(d, {"weight", "Scorer of the EndpointPickerConfig with a weight to choose."}, k.weight);
  field(d, {"profile", "Scheduling profile of that scorer; may be absent when only one has it."},
        k.profile);
  field(d, {"picker", "Scheduling profile with a picker to choose; values are picker types."},
        k.picker);
  field(d, {"split", "Two pools that share the GPUs they have together: [prefill, decode]."},
        k.split);
  field(d, {"values", "The values, a list of whatever the key may hold."}, k.values);
  field(d, {"range", "Lowest and highest number: [0, 10]."}, k.range);
  field(d, {"step", "Distance between the numbers of a range; a twentieth of it when absent."},
        k.step, RealRange{.min = 0, .min_open = true});
  field(d, {"log", "Seven numbers at equal ratios instead of equal distances."}, k.log);
}

void describe(Describer& d, TuneShift& s) {
  field(d, {"name", "Name in results; made from the other keys when absent."}, s.name);
  field(d, {"rate", "Multiplies every rate of the load (workload.rate_scale)."}, s.rate,
        RealRange{.min = 0, .max = 1000, .min_open = true});
  field(d, {"set", "Further assignments that make the other load: KEY=VALUE, as --set."}, s.set);
}

void describe(Describer& d, TuneConfig& c) {
  field(d, {"name", "Name in results; the scenario's when absent."}, c.name);
  field(d, {"question", "The question, one sentence."}, c.question);
  field(d, {"scenario", "The scenario, a path relative to this file.", true}, c.scenario);
  field(d, {"variant", "Variant to tune; may be absent when the scenario has one."}, c.variant);
  field(d, {"set", "Assignments made in every run first: KEY=VALUE, as --set."}, c.set);
  field(d, {"seed", "Seed of the first run and of the search; the scenario's when absent."}, c.seed,
        IntRange{0});
  field(d,
        {"goals",
         "What is better: minimise METRIC or maximise METRIC, such as minimise ttft_ms.p90. Two "
         "goals make a Pareto front."},
        c.goals);
  field(d,
        {"subject_to",
         "What must hold: METRIC < NUMBER, or METRIC < NUMBER% of published. When absent, TTFT "
         "(mean, p90, p99), time per output token, output tokens/s and failures may each get 2 % "
         "worse."},
        c.subject_to);
  field(d,
        {"guards",
         "Whether a candidate leaves that makes something beside the goals worse beyond chance: "
         "failures, the mean and the next tail of a goal's metric, the other throughput. A metric "
         "of subject_to has no such guard."},
        c.guards);
  field(
      d,
      {"budget",
       "Runs that the search may take; when absent 1000, or fewer where a run simulates more than "
       "160 million prompt tokens (a request counts as 1000 more)."},
      c.budget, IntRange{20, 1'000'000});
  field(d, {"block", "Seeds of one round of the race."}, c.block, IntRange{2, 100});
  field(d, {"fresh_seeds", "Seeds of the judgement, which the search does not see."}, c.fresh_seeds,
        IntRange{2, 1000});
  field(d, {"confidence", "The tests in the race have the level 1 - confidence."}, c.confidence,
        RealRange{.min = 0.5, .max = 0.9999, .min_open = true});
  field(d,
        {"shift",
         "Other loads that the result is judged on; rates times 1.25 and times 0.8 when absent."},
        c.shift);
  field(d, {"knobs", "What may be changed; derived from the scenario when absent."}, c.knobs);
}

namespace {

/// The conditions when nobody gives any: these metrics may get a little worse.
constexpr const char* kUsualConditions[] = {
    "ttft_ms.mean <= 102% of published",       "ttft_ms.p90 <= 102% of published",
    "ttft_ms.p99 <= 102% of published",        "tpot_ms.mean <= 102% of published",
    "output_tokens_per_s >= 98% of published", "failure_rate <= 102% of published"};
/// The metrics that the judgement looks at besides: what users feel, in the mean and in the tails.
constexpr const char* kUsualMetrics[] = {"ttft_ms.mean",
                                         "ttft_ms.p90",
                                         "ttft_ms.p99",
                                         "tpot_ms.mean",
                                         "tpot_ms.p90",
                                         "tpot_ms.p99",
                                         "itl_ms.mean",
                                         "itl_ms.p90",
                                         "itl_ms.p99",
                                         "request_latency_ms.mean",
                                         "request_latency_ms.p90",
                                         "request_latency_ms.p99",
                                         "output_tokens_per_s",
                                         "requests_per_s",
                                         "prefix_cache_hit_rate",
                                         "failure_rate"};
constexpr char kPublished[] = "published";

/// The metrics that a goal must not be paid with: the mean and the next tail of its own metric, of
/// a mean the two usual tails, of a throughput the other one; and failures always.
std::vector<MetricName> guards_of(const MetricName& goal) {
  std::vector<std::string> texts;
  const bool has_tails = goal.text.ends_with("." + goal.statistic);
  const std::string of =
      has_tails ? goal.text.substr(0, goal.text.size() - goal.statistic.size()) : std::string();
  if (has_tails) {
    const double at = goal.statistic == "median" ? 50 : std::atof(goal.statistic.c_str() + 1);
    texts = {of + "mean"};
    if (goal.statistic == "mean") texts = {of + "p90", of + "p99"};
    const std::pair<double, const char*> tails[] = {{90, "p90"}, {99, "p99"}, {99.9, "p99.9"}};
    for (const auto& [percentile, name] : tails)
      if (at < percentile && texts.size() < 2) texts.push_back(of + name);
  } else if (goal.text.ends_with("_per_s")) {
    texts = {"output_tokens_per_s", "requests_per_s"};
  }
  std::vector<MetricName> guards;
  for (const std::string& text : texts) {
    guards.push_back(*parse_metric_name(text).value);
    if (has_tails) guards.back().direction = goal.direction;
    guards.back().has_direction = true;
  }
  guards.push_back(*parse_metric_name("failure_rate").value);
  return guards;
}

/// `minimise METRIC` or `maximise METRIC`.
Parsed<TuneGoal> parse_goal(const std::string& text) {
  const std::size_t blank = text.find(' ');
  const std::string verb = text.substr(0, blank);
  const bool small = verb == "minimise" || verb == "minimize";
  if ((!small && verb != "maximise" && verb != "maximize") || blank == std::string::npos)
    return {{},
            "must be minimise METRIC or maximise METRIC (got " + printable(text) + ")",
            "for example minimise ttft_ms.p90"};
  Parsed<MetricName> metric = parse_metric_name(trimmed(std::string_view(text).substr(blank)));
  if (!metric.value) return {{}, metric.message, metric.hint};
  metric.value->direction =
      small ? sim::Direction::kSmallerIsBetter : sim::Direction::kLargerIsBetter;
  metric.value->has_direction = true;
  return {TuneGoal{.metric = *metric.value,
                   .text = (small ? "minimise " : "maximise ") + metric.value->text},
          {},
          {}};
}

/// Fills a tuning's space from its file, or from a scenario.
class TuneReader {
 public:
  TuneReader(const TuneRequest& request, TuneSpace& space, Diagnostics& diagnostics)
      : request_(request), space_(space), config_(space.config), diagnostics_(diagnostics) {}

  void read() {
    space_.path = request_.path;
    const ConfigNode::Ptr root = read_config_file(request_.path, diagnostics_);
    if (root == nullptr || !read_file(*root)) return;
    take_options();
    read_goals();
    for (Assignment& a :
         parse_assignments(config_.set, "set", &provenance_, diagnostics_, diagnostics_))
      space_.base.push_back(std::move(a));
    for (Assignment& a : parse_assignments(request_.sets, {}, nullptr, diagnostics_, diagnostics_))
      space_.base.push_back(std::move(a));
    read_scenario();
  }

 private:
  void error(const std::string& path, const std::string& what, const std::string& hint = {}) {
    if (is_broken(diagnostics_, path)) return;
    SourceLocation where = provenance_.nearest(path);
    if (where.file.empty()) where.file = space_.path;  // A scenario, or a key that is not there.
    diagnostics_.error(where, path, what, hint);
  }

  /// A tune file names a scenario; any other file is one.
  bool read_file(const ConfigNode& root) {
    const FileKind kind = kind_of(root);
    if (kind != FileKind::kScenario && kind != FileKind::kTune)
      if (!is_kind(root, FileKind::kTune, diagnostics_)) return false;
    if (root.is_map() && root.find("scenario") == nullptr && root.find("goals") == nullptr) {
      config_.scenario = request_.path;
      space_.scenario_path = request_.path;
      return true;
    }
    read_struct(root, config_, diagnostics_, {.provenance = &provenance_, .format = "tune"});
    space_.scenario_path = resolve_path(config_.scenario, provenance_.nearest("scenario"));
    return root.is_map() && !config_.scenario.empty();
  }

  void take_options() {
    if (!request_.variant.empty()) config_.variant = request_.variant;
    if (!request_.goals.empty()) config_.goals = request_.goals;
    if (request_.seed) config_.seed = request_.seed;
    if (request_.budget) config_.budget = request_.budget;
    if (request_.fresh_seeds) config_.fresh_seeds = *request_.fresh_seeds;
    // The file and the first two candidates need a block each of the runs that the races get.
    const std::int64_t least =
        std::llround(std::ceil(3.0 * static_cast<double>(config_.block) / (1 - kSimplifyShare)));
    if (config_.budget && *config_.budget < least)
      error("block",
            fmt::format("is too large for the budget (got {} seeds of {} runs)", config_.block,
                        *config_.budget),
            fmt::format("your file and two candidates need a budget of {} runs", least));
  }

  void read_goals() {
    if (config_.goals.empty() || config_.goals.size() > 2)
      error("goals", fmt::format("must be one goal or two (got {})", config_.goals.size()));
    for (std::size_t i = 0; i < config_.goals.size(); ++i) {
      Parsed<TuneGoal> goal = parse_goal(config_.goals[i]);
      const std::string path = request_.goals.empty() ? element_path("goals", i) : "--goal";
      if (!goal.value) {
        error(path, goal.message, goal.hint);
        continue;
      }
      const auto is_same = [&](const TuneGoal& g) {
        return g.metric.metric == goal.value->metric.metric &&
               g.metric.statistic == goal.value->metric.statistic;
      };
      if (const auto same = std::ranges::find_if(space_.goals, is_same); same != space_.goals.end())
        error(path,
              "has the metric of another goal too (got " + goal.value->text + " and " + same->text +
                  ")",
              "one goal is enough; two goals need two metrics");
      space_.goals.push_back(std::move(*goal.value));
    }
    if (config_.subject_to)
      for (std::size_t i = 0; i < config_.subject_to->size(); ++i)
        read_condition((*config_.subject_to)[i], element_path("subject_to", i));
    if (config_.guards) choose_guards();
    if (!config_.subject_to) add_usual_conditions();
  }

  /// No metric of a goal or of a condition that was given; failures have two names.
  void choose_guards() {
    const auto is_taken = [&](const MetricName& metric) {
      const auto is_this = [&](const auto& item) {
        return item.metric == metric ||
               (metric.text == "failure_rate" && item.metric.text == "failed_requests");
      };
      return std::ranges::any_of(space_.goals, is_this) ||
             std::ranges::any_of(space_.conditions, is_this);
    };
    for (const TuneGoal& goal : space_.goals)
      for (MetricName& guard : guards_of(goal.metric))
        if (!is_taken(guard) && std::ranges::find(space_.guards, guard) == space_.guards.end())
          space_.guards.push_back(std::move(guard));
  }

  void add_usual_conditions() {
    for (const char* const text : kUsualConditions) {
      Condition condition = *parse_condition(text).value;
      const auto is_goal = [&](const TuneGoal& g) { return g.metric == condition.metric; };
      if (std::ranges::none_of(space_.goals, is_goal))
        space_.conditions.push_back(std::move(condition));
    }
  }

  void read_condition(const std::string& text, const std::string& path) {
    Parsed<Condition> condition = parse_condition(text);
    if (!condition.value)
      error(path, condition.message, condition.hint);
    else if (!condition.value->reference.empty() && condition.value->reference != kPublished)
      error(path,
            "compares with something else than the published configuration (got " +
                printable(condition.value->reference) + ")",
            "for example tpot_ms.mean < 102% of published");
    else
      space_.conditions.push_back(std::move(*condition.value));
  }

  /// The other loads. One that the scenario does not have the rates for is left out, if it is ours.
  void make_shifts(double rate_scale) {
    const std::vector<TuneShift> asked =
        config_.shift.value_or(std::vector<TuneShift>{{.rate = 1.25}, {.rate = 0.8}});
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const std::string path = element_path("shift", i);
      ShiftedLoad load{.name = asked[i].name};
      const auto describe_by = [&](const std::string& text) {
        if (asked[i].name.empty()) load.name += (load.name.empty() ? "" : ", ") + text;
      };
      if (asked[i].rate != 1) {
        describe_by("rates x " + number_text(asked[i].rate));
        load.extra.push_back(make_assignment("workload.rate_scale",
                                             number_text(rate_scale * asked[i].rate),
                                             provenance_.nearest(path)));
      }
      for (Assignment& a : parse_assignments(asked[i].set, path + ".set", &provenance_,
                                             diagnostics_, diagnostics_)) {
        describe_by(a.path + "=" + (a.value->is_scalar() ? a.value->text() : flow_text(*a.value)));
        load.extra.push_back(std::move(a));
      }
      if (load.extra.empty()) error(path, "changes nothing", "say rate: 1.25");
      Diagnostics found;
      (void)prepare_choice(space_, space_.published(), load.extra, found);
      if (config_.shift && found.has_errors()) append(diagnostics_, found);
      if (!found.has_errors()) space_.shifts.push_back(std::move(load));
    }
  }

  void read_scenario() {
    Diagnostics found;
    ScenarioRequest asked{.path = space_.scenario_path, .assignments = space_.base};
    if (!config_.variant.empty()) asked.variants = {config_.variant};
    if (config_.seed) asked.seed = static_cast<std::uint64_t>(*config_.seed);
    const LoadedScenario loaded = load_scenario(asked, found);
    const auto name = [](const LoadedVariant& v) { return printable(v.scenario.variant); };
    if (loaded.variants.size() > 1 && !found.has_errors())
      error("variant", "is missing, and the scenario has several variants",
            "choose one with variant: or --variant: " + comma_list(loaded.variants, name));
    const std::optional<sim::RunPlan> plan = found.has_errors() || loaded.variants.size() != 1
                                                 ? std::nullopt
                                                 : prepare(loaded.variants.front(), found);
    append(diagnostics_, found);
    if (!plan) return;
    const LoadedVariant& variant = loaded.variants.front();
    config_.variant = variant.scenario.variant;
    space_.scenario_name = variant.scenario.name;
    space_.seed = variant.scenario.seed;
    if (config_.name.empty()) config_.name = variant.scenario.name;
    take_document(variant);
    space_.inputs = files_read(loaded);
    space_.inputs.push_back(space_.path);
    if (space_.picker && !space_.picker->path.empty()) space_.inputs.push_back(space_.picker->path);
    choose_metrics(variant);
    make_knobs({.variant = variant, .plan = *plan, .picker = space_.picker});
    if (!diagnostics_.has_errors()) make_shifts(variant.scenario.workload.rate_scale);
  }

  /// Documents inside other files become part of the scenario, where key paths lead into them.
  void take_document(const LoadedVariant& variant) {
    const Document& document = variant.scenario.routing.endpoint_picker;
    if (variant.scenario.routing.balancer != sim::BalancerKind::kEndpointPicker || document.empty())
      return;
    if (document.path.empty()) {
      space_.picker = TunedPicker{.root = document.root};
      return;
    }
    const std::string path = resolve_path(document.path, document.root->where());
    std::optional<PickerDocument> found = find_picker_document(path);
    if (!found) return;
    space_.picker = TunedPicker{.path = path,
                                .root = std::move(found->root),
                                .text = std::move(found->text),
                                .is_bare = found->is_bare};
    if (space_.picker->is_bare) return;
    space_.picker->settings = {
        make_assignment("routing.era", std::string(policies::name(variant.endpoint_picker->era))),
        make_assignment("routing.router_replicas",
                        std::to_string(variant.scenario.routing.router_replicas))};
  }

  void choose_metrics(const LoadedVariant& variant) {
    const auto add = [&](const MetricName& metric) {
      if (std::ranges::find(space_.metrics, metric) == space_.metrics.end())
        space_.metrics.push_back(metric);
    };
    for (const TuneGoal& goal : space_.goals) add(goal.metric);
    for (const Condition& condition : space_.conditions) add(condition.metric);
    for (const MetricName& guard : space_.guards) add(guard);
    for (const MetricName& metric : space_.metrics)
      if (needs_goals(metric) && goals_of(variant.scenario).empty())
        error("goals", metric.text + " needs latency goals, and the scenario has none",
              "give the scenario goodput: [ttft:500ms, tpot:50ms]");
    for (const char* const text : kUsualMetrics) add(*parse_metric_name(text).value);
    if (!goals_of(variant.scenario).empty()) add(goodput_metric());
  }

  void make_knobs(const KnobSource& source) {
    for (std::size_t i = 0; i < source.plan.pools.size(); ++i) {
      const sim::PoolConfig& pool = source.plan.pools[i].config;
      space_.engines.emplace(pool.name, pool.engine.kind);
      space_.engines.emplace(std::to_string(i), pool.engine.kind);
    }
    if (config_.knobs.empty()) {
      space_.knobs = derive_knobs(source);
      for (std::size_t k = 0; k < space_.knobs.size(); ++k) keep_possible_values(k);
      std::erase_if(space_.knobs, [](const Knob& knob) { return knob.values.size() < 2; });
      if (space_.knobs.empty())
        diagnostics_.error({.file = space_.path}, "knobs", "there is nothing to choose",
                           "list what may be changed in a tune file");
      return;
    }
    std::set<std::string> names;
    for (std::size_t i = 0; i < config_.knobs.size(); ++i) {
      const std::string path = element_path("knobs", i);
      if (is_broken(diagnostics_, path)) continue;
      std::optional<Knob> knob =
          read_knob(config_.knobs[i], path, source, provenance_, diagnostics_);
      if (!knob) continue;
      if (!names.insert(knob->name).second)
        error(path, "has the name of another knob too (got " + printable(knob->name) + ")",
              "give each a name");
      space_.knobs.push_back(std::move(*knob));
    }
    for (std::size_t k = 0; k < space_.knobs.size(); ++k) {
      const Diagnostics found = errors_of(k, space_.knobs[k].values.size());
      for (Diagnostic d : found.items()) {
        d.where = space_.knobs[k].where;
        if (d.severity == Severity::kError) diagnostics_.add(std::move(d));
      }
    }
  }

  /// The faults of a knob's values, each alone: of numbers, the lowest and the highest are tried,
  /// of other values the first `most`.
  Diagnostics errors_of(std::size_t k, std::size_t most) const {
    Diagnostics found;
    const Knob& knob = space_.knobs[k];
    for (std::size_t v = 0; v < knob.values.size() && v < most; ++v)
      if (v != knob.published && (!knob.ordered || v == 0 || v + 1 == knob.values.size()))
        append(found, errors_of_value(k, v));
    return found;
  }

  Diagnostics errors_of_value(std::size_t k, std::size_t v) const {
    Diagnostics found;
    Choice choice = space_.published();
    choice[k] = v;
    (void)prepare_choice(space_, choice, {}, found);
    return found;
  }

  void keep_possible_values(std::size_t k) {
    Knob& knob = space_.knobs[k];
    for (std::size_t v = knob.values.size(); v-- > 0;) {
      if (v == knob.published || !errors_of_value(k, v).has_errors()) continue;
      knob.values.erase(knob.values.begin() + static_cast<std::ptrdiff_t>(v));
      if (v < knob.published) --knob.published;
    }
  }

  const TuneRequest& request_;
  TuneSpace& space_;
  TuneConfig& config_;
  Diagnostics& diagnostics_;
  Provenance provenance_;
};

}  // namespace

Choice TuneSpace::published() const {
  Choice choice;
  for (const Knob& knob : knobs) choice.push_back(knob.published);
  return choice;
}

Choice TuneSpace::possible(Choice choice) const {
  for (std::size_t k = 0; k < knobs.size(); ++k)
    for (const std::size_t other : changed(choice))
      if (knobs[k].type_knob == knobs[other].name) choice[k] = knobs[k].published;
  return choice;
}

std::vector<Assignment> TuneSpace::assignments(const Choice& choice) const {
  std::vector<Assignment> all;
  for (std::size_t k = 0; k < knobs.size(); ++k)
    for (const Assignment& a : knobs[k].values[choice[k]].assignments) all.push_back(a);
  return all;
}

Named<std::string> TuneSpace::values_of(const Choice& choice) const {
  Named<std::string> values;
  for (std::size_t k = 0; k < knobs.size(); ++k)
    values.items.emplace_back(knobs[k].name, knobs[k].values[choice[k]].text);
  return values;
}

std::vector<std::size_t> TuneSpace::changed(const Choice& choice) const {
  std::vector<std::size_t> out;
  for (std::size_t k = 0; k < knobs.size(); ++k)
    if (choice[k] != knobs[k].published) out.push_back(k);
  return out;
}

TuneSpace load_tune(const TuneRequest& request, Diagnostics& diagnostics) {
  TuneSpace space;
  Diagnostics found;
  TuneReader(request, space, found).read();
  append(diagnostics, tidy(found));
  return space;
}

std::optional<sim::RunPlan> prepare_choice(const TuneSpace& space, const Choice& choice,
                                           const std::vector<Assignment>& extra,
                                           Diagnostics& diagnostics) {
  ScenarioRequest request{.path = space.scenario_path,
                          .variants = {space.config.variant},
                          .seed = space.seed,
                          .assignments = space.base};
  std::vector<Assignment> document;
  if (space.picker && !space.picker->is_bare) {
    document = space.picker->settings;
    document.push_back(make_assignment(kPickerPath, {}));
    document.back().value = space.picker->root;
  }
  for (const std::vector<Assignment>& more : {document, space.assignments(choice), extra})
    request.assignments.insert(request.assignments.end(), more.begin(), more.end());
  return prepare_candidate(request, diagnostics);
}

Assignment make_assignment(const std::string& path, const std::string& value,
                           const SourceLocation& where) {
  return {.path = path,
          .steps = parse_key_path(path).value(),
          .value = ConfigNode::make_scalar(value, ConfigNode::Style::kUntyped, where),
          .where = where};
}

}  // namespace routesim::tools
