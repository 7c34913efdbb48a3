// routesim compare: two results side by side, and gates on what changed.
#include "base/printable.h"
#include "tools/cli/cli.h"
#include "tools/cli/output_target.h"
#include "tools/ingest/scenario_yaml.h"
#include "tools/study/compare/comparison.h"

namespace routesim::tools {

namespace {

constexpr std::array<std::string_view, 5> kFormats = {"table", "json", "markdown", "junit",
                                                      "github"};

std::string render(const Comparison& c, const std::string& format) {
  if (format == "json") return render_comparison_json(c);
  if (format == "markdown") return render_comparison_markdown(c);
  if (format == "junit") return render_junit("compare " + c.changed->set.scenario, c.gates);
  if (format == "github") return render_github("compare " + c.changed->set.scenario, c.gates);
  return render_comparison_text(c);
}

bool parse_request(const OptionValues& options, ComparisonRequest& request, std::string& error) {
  request.variants = options.all("variant");
  request.stage = options.get("stage");
  for (const std::string& text : options.all("fail-if")) {
    Parsed<Gate> gate = parse_gate(text);
    if (!gate.value) {
      error = "--fail-if " + gate.message + "; " + gate.hint;
      return false;
    }
    request.gates.push_back(std::move(*gate.value));
  }
  if (request.variants.size() > 2) error = "--variant is given once or twice: of BASE, of NEW";
  if (options.positionals.size() == 1 && request.variants.size() != 2)
    error = "one RESULT needs two --variant: the one to start from, then the other";
  return error.empty();
}

ExitCode run_compare(const OptionValues& options, Console& console) {
  ComparisonRequest request;
  std::string error;
  const auto outputs = parse_named_outputs(options.all("output"), kFormats, error);
  if (!outputs || !parse_request(options, request, error))
    return usage_error(console, "compare", error);

  std::vector<std::string> paths;
  for (const NamedOutput& output : *outputs) paths.push_back(output.path);
  if (!check_outputs(paths, options.positionals, console)) return ExitCode::kInvalid;
  Diagnostics diagnostics;
  std::vector<MetricName> metrics;
  for (const Gate& gate : request.gates) metrics.push_back(gate.metric);
  const auto base = read_result_file(options.positionals.front(), metrics, diagnostics);
  const auto changed = options.positionals.size() == 1
                           ? base
                           : read_result_file(options.positionals.back(), metrics, diagnostics);
  std::optional<Comparison> comparison;
  if (base && changed) comparison = compare_results(*base, *changed, request, diagnostics);
  console.complain(tidy(diagnostics));
  if (!comparison || diagnostics.has_errors()) return ExitCode::kInvalid;

  const auto text = [&](const std::string& format) { return render(*comparison, format); };
  if (!write_named_outputs(*outputs, text, console)) return ExitCode::kInvalid;
  switch (overall(comparison->gates)) {
    case Decision::kFails:
      return ExitCode::kFailed;
    case Decision::kUndecided:
      return ExitCode::kInconclusive;
    case Decision::kHolds:
      break;
  }
  return ExitCode::kSuccess;
}

}  // namespace

Command compare_command() {
  return {
      .name = "compare",
      .summary = "Compare two results of `run --output json`, with gates for a build server.",
      .positional = {.name = "RESULT", .min = 1, .max = 2},
      .options = {{"fail-if", "GATE",
                   "Exit with 1 when a change is surely too large, with 4 when the intervals do "
                   "not decide: 'ttft_ms.p99>+5%', 'output_tokens_per_s<-2%', "
                   "'ttft_ms.p99>500'.",
                   true},
                  {"variant", "NAME",
                   "Only this variant; given twice, the first of BASE and the second of NEW "
                   "(one RESULT is enough then).",
                   true},
                  {"stage", "NAME", "Compare this load stage, not the whole run.", false},
                  {"output,o",
                   "FORMAT[=PATH]",
                   "table (default), json, markdown, junit or github (annotations).",
                   true,
                   {},
                   {"table", "json", "markdown", "junit", "github"}}},
      .run = &run_compare};
}

}  // namespace routesim::tools
