#include "tools/study/calibrate/calibrate_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/config_node.h"
#include "base/scalar_parse.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/ingest/servers/catalogue_file.h"
#include "tools/ingest/tree/csv_splitter.h"
#include "tools/ingest/tree/description.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

using models::BatchShape;

/// The most of the KV cache a static batch may fill and still not have queued.
constexpr double kFullCache = 0.95;
/// vLLM's default max_num_batched_tokens on large GPUs.
constexpr std::int64_t kTokenBudget = 8192;

struct ShapeColumn {
  std::string_view name;
  std::int64_t BatchShape::*member;
};
constexpr std::array<ShapeColumn, 11> kShapeColumns = {{
    {"decode_requests", &BatchShape::decode_requests},
    {"decode_context", &BatchShape::decode_context},
    {"shared_context", &BatchShape::shared_context},
    {"shared_once", &BatchShape::shared_once},
    {"prefill_requests", &BatchShape::prefill_requests},
    {"prefill_tokens", &BatchShape::prefill_tokens},
    {"prefill_context", &BatchShape::prefill_context},
    {"prefill_pairs", &BatchShape::prefill_pairs},
    {"group_tokens", &BatchShape::group_tokens},
    {"group_total_tokens", &BatchShape::group_total_tokens},
    {"group_rounds", &BatchShape::group_rounds},
}};

/// `1 row is`, `3 rows are`.
std::string rows_are(std::size_t n) {
  return std::to_string(n) + (n == 1 ? " row is" : " rows are");
}

/// A CSV file with a header, read by column name.
class Sheet {
 public:
  Sheet(std::string_view text, const std::string& file, Diagnostics& diagnostics)
      : file_(file), diagnostics_(diagnostics) {
    CsvSplitter splitter(text, file, diagnostics);
    std::vector<std::string> fields;
    std::vector<SourceLocation> places;
    (void)splitter.next(header_, places);
    while (splitter.next(fields, places))
      if (fields.size() > 1 || !fields.front().empty())
        rows_.push_back({places.front().line, std::move(fields)});
    drop_ragged_rows();
  }

  const std::vector<std::string>& header() const { return header_; }
  std::size_t size() const { return rows_.size(); }
  int line(std::size_t row) const { return rows_[row].line; }

  /// The first of these columns that is there.
  std::optional<std::size_t> column(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names)
      for (std::size_t i = 0; i < header_.size(); ++i)
        if (header_[i] == name) return i;
    return std::nullopt;
  }

  const std::string& cell(std::size_t row, std::size_t column) const {
    return rows_[row].fields[column];
  }

  std::int64_t whole(std::size_t row, std::size_t column, std::int64_t least) {
    return take(row, column, parse_integer(*node(row, column), IntRange{least})).value_or(least);
  }
  double positive(std::size_t row, std::size_t column) {
    const RealRange range{.min = 0, .min_open = true};
    return take(row, column, parse_real(cell(row, column), range)).value_or(1);
  }

  void error(int line, const std::string& column, const std::string& what) {
    diagnostics_.error({.file = file_, .line = line, .column = 1}, column, what);
  }

 private:
  ConfigNode::Ptr node(std::size_t row, std::size_t column) const {
    return ConfigNode::make_scalar(cell(row, column), ConfigNode::Style::kUntyped, {});
  }
  template <class T>
  std::optional<T> take(std::size_t row, std::size_t column, const Parsed<T>& parsed) {
    if (!parsed.value) error(line(row), header_[column], parsed.message);
    return parsed.value;
  }

  /// Rows of another length are errors; a file of another kind has many, so a few are shown.
  void drop_ragged_rows() {
    constexpr std::size_t kShown = 5;
    std::size_t ragged = 0;
    std::erase_if(rows_, [this, &ragged](const Row& row) {
      if (row.fields.size() == header_.size()) return false;
      if (++ragged <= kShown)
        error(row.line, "",
              "must have " + std::to_string(header_.size()) + " fields (got " +
                  std::to_string(row.fields.size()) + ")");
      return true;
    });
    if (ragged > kShown)
      error(1, "", "has " + std::to_string(ragged) + " rows of another length than the header");
  }

  struct Row {
    int line;
    std::vector<std::string> fields;
  };
  const std::string& file_;
  Diagnostics& diagnostics_;
  std::vector<std::string> header_;
  std::vector<Row> rows_;
};

void widen(std::int64_t& limit, std::int64_t value) { limit = std::max(limit, value); }

void read_steps(Sheet& sheet, std::size_t ms, CalibrationData& data) {
  std::vector<std::int64_t BatchShape::*> members(sheet.header().size(), nullptr);
  const auto weight = sheet.column({"weight"});
  const auto label = sheet.column({"label"});
  for (std::size_t c = 0; c < sheet.header().size(); ++c) {
    for (const ShapeColumn& shape : kShapeColumns)
      if (sheet.header()[c] == shape.name) members[c] = shape.member;
    if (members[c] == nullptr && c != ms && c != weight && c != label)
      sheet.error(1, sheet.header()[c], "unknown column in a table of step times");
  }
  for (std::size_t r = 0; r < sheet.size(); ++r) {
    BatchShape shape;
    for (std::size_t c = 0; c < members.size(); ++c)
      if (members[c] != nullptr) shape.*members[c] = sheet.whole(r, c, 0);
    models::CurveSample sample = models::step_sample(shape, sheet.positive(r, ms));
    if (weight) sample.weight = sheet.positive(r, *weight);
    sample.label = label ? sheet.cell(r, *label) : "line " + std::to_string(sheet.line(r));
    data.samples.push_back(std::move(sample));
    widen(data.range.max_decode_requests, shape.decode_requests);
    widen(data.range.max_decode_context, shape.decode_context);
    widen(data.range.max_prefill_tokens, shape.prefill_tokens);
    if (shape.prefill_requests > 0)
      widen(data.range.max_prefill_context, shape.prefill_context / shape.prefill_requests);
  }
}

/// Reads rows of static-batch benchmarks.
class StaticBatchReader {
 public:
  StaticBatchReader(Sheet& sheet, const CalibrationTarget& target)
      : sheet_(sheet), target_(target) {
    catalogue_.add(target.accelerator);
    catalogue_.add(target.model);
  }

  void read(CalibrationData& data) {
    const auto isl = sheet_.column({"isl"});
    const auto osl = sheet_.column({"osl"});
    const auto concurrency = sheet_.column({"concurrency", "concurrency_batch"});
    const auto tpot = sheet_.column({"tpot_ms", "tpot_ms_measured"});
    const auto id = sheet_.column({"id", "label"});
    if (!isl || !osl || !concurrency || !tpot) {
      sheet_.error(1, "",
                   "a table of static batches needs isl, osl, concurrency and tpot_ms; a "
                   "table of step times needs ms");
      return;
    }
    for (std::size_t r = 0; r < sheet_.size(); ++r) {
      if (!is_of_target(r)) continue;
      const models::StaticBatchRow row{
          .isl = sheet_.whole(r, *isl, 1),
          .osl = sheet_.whole(r, *osl, 1),
          .concurrency = sheet_.whole(r, *concurrency, 1),
          .tpot_ms = sheet_.positive(r, *tpot),
          .label = id ? sheet_.cell(r, *id) : "line " + std::to_string(sheet_.line(r))};
      const std::int64_t tokens = row.concurrency * (row.isl + row.osl);
      if (static_cast<double>(tokens) > kFullCache * target_.kv_tokens) {
        ++queued_;
        continue;
      }
      data.samples.push_back(models::tpot_sample(row));
      widen(data.range.max_decode_requests, row.concurrency);
      widen(data.range.max_decode_context, tokens);
      // The first prompts arrive together and fill whole steps.
      widen(data.range.max_prefill_tokens, std::min(kTokenBudget, row.concurrency * row.isl));
      widen(data.range.max_prefill_context, row.isl);
    }
    add_notes(data);
  }

 private:
  /// Whether the row's columns, as far as there are any, name the target's deployment.
  bool is_of_target(std::size_t r) {
    const auto text = [&](std::initializer_list<std::string_view> names) {
      const auto c = sheet_.column(names);
      return c ? sheet_.cell(r, *c) : std::string();
    };
    std::string model = text({"model"});
    if (!model.empty() && text({"precision"}).starts_with("fp8")) model += "-FP8";
    if (!model.empty()) {
      const models::ModelSpec* found = catalogue_.find_model(model);
      if (found == nullptr || found->name != target_.model.name) return ++other_model_, false;
    }
    const std::string system = text({"system"});
    if (!system.empty()) {
      const models::AcceleratorSpec* found = catalogue_.find_accelerator(system);
      if (found == nullptr || found->name != target_.accelerator.name)
        return ++other_system_, false;
    }
    const auto tp = sheet_.column({"tp"});
    if (tp && sheet_.whole(r, *tp, 1) != target_.parallelism.tp) return ++other_tp_, false;
    return true;
  }

  void add_notes(CalibrationData& data) const {
    const auto note = [&](std::size_t n, const std::string& what) {
      if (n > 0) data.notes.push_back(rows_are(n) + " " + what);
    };
    note(other_model_, "of another model or precision");
    note(other_system_, "of another accelerator");
    note(other_tp_, "of another tensor parallelism");
    note(queued_, "left out: the batch fills more than 95 % of " +
                      fixed_text(target_.kv_tokens, 0) + " KV tokens, so requests may have waited");
    std::string ignored;
    constexpr std::array<std::string_view, 12> kUsed = {"isl",         "osl",
                                                        "concurrency", "concurrency_batch",
                                                        "tpot_ms",     "tpot_ms_measured",
                                                        "id",          "label",
                                                        "model",       "system",
                                                        "tp",          "precision"};
    for (const std::string& column : sheet_.header())
      if (std::ranges::find(kUsed, column) == kUsed.end())
        ignored += (ignored.empty() ? "" : ", ") + printable(column, 40);
    if (!ignored.empty()) data.notes.push_back("columns not used: " + ignored);
  }

  Sheet& sheet_;
  const CalibrationTarget& target_;
  models::Catalogue catalogue_ = builtin_catalogue();
  std::size_t other_model_ = 0, other_system_ = 0, other_tp_ = 0, queued_ = 0;
};

models::CostCurveParameters rounded(models::CostCurveParameters p) {
  for (double* v : {&p.step_ms, &p.sequence_ms, &p.context_us_per_ktok, &p.shared_context_weight,
                    &p.mixed_context_us_per_ktok, &p.prefill_us_per_token, &p.prefill_pair_ns,
                    &p.prefill_chunk_ms, &p.token_us, &p.cpu_step_ms, &p.cpu_sequence_ms,
                    &p.group_round_ms, &p.group_padding_us, &p.group_token_us})
    *v = with_digits(*v, 6);
  return p;
}

}  // namespace

void read_calibration_csv(const std::string& text, const std::string& file,
                          const CalibrationTarget& target, CalibrationData& data,
                          Diagnostics& diagnostics) {
  Sheet sheet(text, file, diagnostics);
  if (const auto ms = sheet.column({"ms"})) {
    read_steps(sheet, *ms, data);
  } else {
    StaticBatchReader(sheet, target).read(data);
  }
}

std::string catalogue_yaml(const models::FittedCurve& curve) {
  models::FittedCurve copy = curve;
  copy.parameters = rounded(copy.parameters);
  const FieldDescription described =
      describe_values([&copy](Describer& d) { models::describe(d, copy); });
  const auto list = ConfigNode::make_sequence({to_node(described)}, {});
  return to_yaml(*ConfigNode::make_map({{.key = "curves", .key_where = {}, .value = list}}, {}));
}

std::string calibration_text(const models::CurveFit& fit, const CalibrationData& data) {
  TextTable table(1);
  table.add_row({"coefficient", "value", "95 % from", "to", "roofline", "decided", "remark"});
  for (const models::FittedCoefficient& c : fit.coefficients)
    table.add_row({std::string(coefficient_name(c.coefficient)),
                   number_text(with_digits(c.value, 6)), number_text(with_digits(c.low, 6)),
                   number_text(with_digits(c.high, 6)), number_text(with_digits(c.prior, 6)),
                   std::string(identified_name(c.identified)), c.note});
  const models::ResidualSummary& r = fit.residuals;
  std::string out = table.str();
  out.append("\n").append(std::to_string(r.samples)) +=
      " samples; relative residuals, %: mean absolute " + fixed_text(r.mean_absolute, 2) +
      ", bias " + signed_percent(r.bias) + ", p50 " + fixed_text(r.p50, 2) + ", p90 " +
      fixed_text(r.p90, 2) + ", p99 " + fixed_text(r.p99, 2) + ", max " + fixed_text(r.max, 2) +
      "\n";
  std::vector<std::size_t> order(fit.relative_residuals.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return std::abs(fit.relative_residuals[a]) > std::abs(fit.relative_residuals[b]);
  });
  for (std::size_t i = 0; i < std::min<std::size_t>(3, order.size()); ++i)
    out += "worst: " + printable(data.samples[order[i]].label, 120) + " " +
           signed_percent(100 * fit.relative_residuals[order[i]]) + " %\n";
  for (const std::string& note : fit.notes) out += "note: " + note + "\n";
  for (const std::string& note : data.notes) out += "note: " + printable(note, 500) + "\n";
  return out;
}

}  // namespace routesim::tools
