// routesim compare: two results side by side, and gates on what changed.
#include "tools/cli/cli.h"
#include "tools/cli/output_target.h"
#include "tools/ingest/scenario/scenario_yaml.h"
#include "tools/render/document.h"
#include "tools/results/described_json.h"
#include "tools/study/compare/comparison.h"
#include "tools/study/compare/comparison_record.h"

namespace routesim::tools {

namespace {

std::string render_comparison(const Comparison& c, const std::string& format, std::size_t width) {
  ComparisonRecord record = comparison_record(c);
  if (format == "json") return json_text(record);
  const StudyDocument document = comparison_document(record);
  return format == "html" ? document_page(document, json_text(record))
                          : draw(document, format, width);
}

ComparisonRequest read_comparison_request(Options& options) {
  ComparisonRequest request;
  request.variants = options.all("variant");
  request.stage = options.get("stage");
  for (const std::string& text : options.all("fail-if")) {
    Parsed<Gate> gate = parse_gate(text);
    if (gate.value)
      request.gates.push_back(std::move(*gate.value));
    else
      options.fail("--fail-if " + gate.message + "; " + gate.hint);
  }
  if (request.variants.size() > 2)
    options.fail("--variant is given once or twice: for BASE, for NEW");
  if (options.positionals().size() == 1 && request.variants.size() != 2)
    options.fail("one RESULT needs two --variant: the one to start from, then the other");
  return request;
}

ExitCode run_compare(Options& options, Console& console) {
  const ComparisonRequest request = read_comparison_request(options);
  const std::vector<Output> outputs = options.outputs();
  if (!options.ok()) return refuse(options, console);
  const std::vector<std::string>& results = options.positionals();
  if (!check_outputs(outputs, results, console)) return ExitCode::kInvalid;
  Diagnostics diagnostics;
  std::vector<MetricName> metrics;
  for (const Gate& gate : request.gates) metrics.push_back(gate.metric);
  const auto base = read_result_file(results.front(), metrics, diagnostics);
  const auto changed =
      results.size() == 1 ? base : read_result_file(results.back(), metrics, diagnostics);
  std::optional<Comparison> comparison;
  if (base && changed) comparison = compare_results(*base, *changed, request, diagnostics);
  console.complain(tidy(diagnostics));
  if (!comparison || diagnostics.has_errors()) return ExitCode::kInvalid;

  const auto text = [&](const std::string& format, std::size_t width) {
    return render_comparison(*comparison, format, width);
  };
  if (!write_outputs(outputs, text, console)) return ExitCode::kInvalid;
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
                  variant_option(
                      "Only this variant; given twice, the first for BASE and the second "
                      "for NEW (one RESULT is enough then)."),
                  {"stage", "NAME", "Compare this load stage, not the whole run."},
                  {.name = "output,o",
                   .value_name = "FORMAT[=PATH]",
                   .help = "table (default), json, markdown, html (before and after on one page), "
                           "junit or github (annotations).",
                   .repeatable = true,
                   .choices = {"table", "json", "markdown", "html", "junit", "github"}}},
      .examples = {{"routesim compare before.json after.json",
                    "Every metric with its change and its interval."},
                   {"routesim compare before.json after.json --fail-if 'ttft_ms.p99>+5%'",
                    "Exit code 1 when the p99 grew by more than 5 %."},
                   {"routesim compare result.json --variant service --variant prefix-aware",
                    "Two variants of one result."}},
      .run = &run_compare};
}

}  // namespace routesim::tools
