// routesim trace: what the requests of a trace or a scenario's load share.
#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/cli/cli.h"
#include "tools/cli/inputs.h"
#include "tools/ingest/scenario/prepare.h"
#include "tools/ingest/scenario/scenario_yaml.h"
#include "tools/ingest/traces/trace_files.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/study/trace/trace_study.h"

namespace routesim::tools {

namespace {

struct TraceSettings {
  std::string path;
  std::int64_t block_size = 16;
  std::int64_t most = 0;  ///< Requests; 0: all.
  bool json = false;
  /// Settings for a trace file; a scenario says these itself.
  std::string format, columns;
  workloads::TraceReplayConfig replay;
  workloads::MissingLengths missing;
};

/// Standard input holds a scenario, and so does what the Python package hands over.
bool is_scenario(const std::string& path) {
  return path == kStandardInput || path.starts_with("/dev/fd/") || path.ends_with(".yaml") ||
         path.ends_with(".yml");
}

TraceSettings read_trace_settings(Options& options) {
  TraceSettings settings{.path = options.positionals().front(),
                         .block_size = options.whole("block-size", IntRange{1, 1'000'000}, 16),
                         .most = options.whole("requests", IntRange{1}, 0),
                         .json = options.choice("output") == "json",
                         .format = options.get("format"),
                         .columns = options.get("columns"),
                         .replay = {},
                         .missing = {}};
  const IntRange lengths{1, 100'000'000};
  settings.missing = {.input_tokens = options.whole("missing-input", lengths, 0),
                      .output_tokens = options.whole("missing-output", lengths, 0)};
  settings.replay.hash_block_tokens =
      options.whole("hash-block-tokens", IntRange{1, 1'000'000}, 512);
  const std::string history = options.choice("history");
  for (const auto rule : {workloads::SessionHistory::kIncluded, workloads::SessionHistory::kAdded,
                          workloads::SessionHistory::kNone})
    if (history == enum_name(rule)) settings.replay.history = rule;
  const bool scenario = is_scenario(settings.path);
  for (const char* name :
       {"format", "columns", "history", "hash-block-tokens", "missing-input", "missing-output"})
    if (scenario && options.has(name))
      options.fail("--" + std::string(name) + " is for a trace; use --set with a scenario");
  for (const char* name : {"set", "variant"})
    if (!scenario && options.has(name))
      options.fail("--" + std::string(name) + " is for a scenario (a file of YAML)");
  return settings;
}

/// The columns as a scenario would have them: a map of YAML.
std::optional<workloads::CsvColumns> read_columns(const std::string& text,
                                                  Diagnostics& diagnostics) {
  if (text.empty()) return std::nullopt;
  workloads::CsvColumns columns;
  const ConfigNode::Ptr node = parse_config(text, {.file = "--columns"}, diagnostics);
  if (node != nullptr) read_struct(*node, columns, diagnostics, {.path = "columns", .format = {}});
  return columns;
}

std::unique_ptr<workloads::LoadGenerator> open_trace_load(const TraceSettings& settings,
                                                          Diagnostics& diagnostics) {
  TraceReference reference;
  reference.path = settings.path;
  reference.path_where.file = settings.path;
  reference.path_key = "trace";
  reference.format = settings.format;
  reference.format_where.file = "--format";
  reference.format_key = "format";
  reference.columns = read_columns(settings.columns, diagnostics);
  reference.columns_where.file = "--columns";
  reference.columns_key = "columns";
  if (settings.missing.input_tokens + settings.missing.output_tokens > 0)
    reference.missing = settings.missing;
  reference.missing_where.file = "--missing-input, --missing-output";
  reference.missing_key = "missing";
  workloads::LoadInputs inputs;
  inputs.trace = open_trace(reference, diagnostics);
  if (diagnostics.has_errors()) return nullptr;
  return make_load_generator(settings.replay, {}, inputs, diagnostics);
}

/// The load of one variant; `seed` draws it where it is synthetic.
std::unique_ptr<workloads::LoadGenerator> scenario_load(Options& options,
                                                        Diagnostics& diagnostics) {
  const ScenarioRequest request = scenario_request(options, options.positionals().front());
  append(diagnostics, options.problems());
  if (diagnostics.has_errors()) return nullptr;
  const LoadedScenario loaded = load_scenario(request, diagnostics);
  if (diagnostics.has_errors()) return nullptr;
  const LoadedVariant& variant = loaded.variants.front();
  const std::optional<sim::RunPlan> plan = prepare(variant, diagnostics);
  return plan ? plan->make_load(variant.scenario.seed, diagnostics) : nullptr;
}

/// Keys of the trace that nobody uses.
std::vector<KeyUse> unused_keys(const Diagnostics& diagnostics) {
  std::vector<KeyUse> keys;
  for (const KeyUse& key : diagnostics.keys())
    if (key.format == "trace" && key.fate == Fate::kNoEffect) keys.push_back(key);
  return keys;
}

ExitCode run_trace(Options& options, Console& console) {
  const TraceSettings settings = read_trace_settings(options);
  if (!options.ok()) return refuse(options, console);
  Diagnostics diagnostics;
  const std::unique_ptr<workloads::LoadGenerator> load =
      is_scenario(settings.path) ? scenario_load(options, diagnostics)
                                 : open_trace_load(settings, diagnostics);
  console.complain(tidy(diagnostics));
  if (load == nullptr || diagnostics.has_errors()) return ExitCode::kInvalid;
  const TraceStudy study = study_trace(*load, settings.block_size, settings.most);
  const std::vector<KeyUse> keys = unused_keys(diagnostics);
  console.print(settings.json ? render_trace_json(study, settings.path, keys)
                              : render_trace_text(study, settings.path, keys));
  return ExitCode::kSuccess;
}

}  // namespace

Command trace_command() {
  return {
      .name = "trace",
      .summary = "Print what the requests of a trace, or of a scenario's load, share.",
      .positional = {.name = "FILE", .min = 1, .max = 1, .ships = true},
      .options = {{"block-size", "N", "Tokens per block of the prefix cache (default 16)."},
                  {"requests", "N", "Look at the first N requests only."},
                  {"format", "NAME", "Format of the trace; told from the file when absent."},
                  {"columns", "MAP", "Columns of a trace, such as '{input: prompt_tokens}'."},
                  {"hash-block-tokens", "N", "Tokens one hash id stands for (default 512)."},
                  {"missing-input", "N", "Tokens of prompts that a log does not have."},
                  {"missing-output", "N", "Tokens of answers that a log does not have."},
                  {.name = "history",
                   .value_name = "RULE",
                   .help = "What a turn's input length counts: included (default), added, none.",
                   .choices = {"included", "added", "none"}},
                  variant_option("The variant of a scenario; default the first."),
                  set_option("Override a value of a scenario, as in `run`."),
                  allow_library_option(),
                  {.name = "output,o",
                   .value_name = "FORMAT",
                   .help = "text (default) or json.",
                   .choices = {"text", "json"}}},
      .examples = {{"routesim trace chats.csv",
                    "Rates, lengths and the hits that a cache of each size can find."},
                   {"routesim trace question.yaml --requests 1000 -o json",
                    "The same of a scenario's load, as JSON."}},
      .run = &run_trace};
}

}  // namespace routesim::tools
