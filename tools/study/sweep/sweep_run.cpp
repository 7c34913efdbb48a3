#include "tools/study/sweep/sweep_run.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/run_error.h"
#include "base/text.h"
#include "tools/study/experiment/journal.h"

namespace routesim::tools {

namespace {

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t v = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, v);
  if (read.ec != std::errc{} || read.ptr != end || v < 0) return std::nullopt;
  return v;
}

/// A shard counted from 0; `what` names the source in messages.
std::optional<SweepShard> make_shard(std::int64_t index, std::int64_t count,
                                     const std::string& what, std::string& error) {
  if (index < 0 || index >= count) {
    const std::string shown = index < 0 ? std::to_string(index + 1)
                                        : std::to_string(static_cast<std::uint64_t>(index) + 1);
    error = what + " names shard " + shown + " of " + std::to_string(count) +
            (count > 0 ? "; shards count from 1 to " + std::to_string(count) : "");
    return std::nullopt;
  }
  return SweepShard{.index = static_cast<std::size_t>(index),
                    .count = static_cast<std::size_t>(count),
                    .origin = what};
}

std::optional<SweepShard> from_option(const std::string& text, std::string& error) {
  if (text == "none") return SweepShard{.index = 0, .count = 1, .origin = "--shard"};
  const std::size_t slash = text.find('/');
  const std::optional<std::int64_t> index = whole_number(text.substr(0, slash));
  const std::optional<std::int64_t> count =
      slash == std::string::npos ? std::nullopt : whole_number(text.substr(slash + 1));
  if (!index || !count) {
    error = "--shard must be I/N, the first of 8 being 1/8 and the last 8/8, or none (got " +
            printable(text) + ")";
    return std::nullopt;
  }
  return make_shard(*index - 1, *count, "--shard", error);
}

/// The variable as a number; `fallback` when it is not set.
std::optional<std::int64_t> variable(const Environment& environment, const std::string& name,
                                     std::optional<std::int64_t> fallback, std::string& error) {
  const std::optional<std::string> text = environment(name);
  if (!text && !fallback) error = name + " is not set";
  if (!text) return fallback;
  const std::optional<std::int64_t> v = whole_number(*text);
  if (!v) error = name + " is not a whole number (got " + printable(*text) + ")";
  return v;
}

std::optional<SweepShard> from_slurm(const Environment& environment, std::string& error) {
  const auto id = variable(environment, "SLURM_ARRAY_TASK_ID", std::nullopt, error);
  const auto count = variable(environment, "SLURM_ARRAY_TASK_COUNT", std::nullopt, error);
  const auto first = variable(environment, "SLURM_ARRAY_TASK_MIN", std::nullopt, error);
  const auto last = variable(environment, "SLURM_ARRAY_TASK_MAX", std::nullopt, error);
  if (!id || !count || !first || !last) {
    error += ": give --shard I/N";
    return std::nullopt;
  }
  const bool whole = *count > 1 && *first <= 1 && *last - *first == *count - 1;
  if (!whole) {
    error = "the Slurm array has " + std::to_string(*count) + " tasks from " +
            std::to_string(*first) + " to " + std::to_string(*last) +
            ", which may be a part of a larger array, so it does not say the share of task " +
            std::to_string(*id) + ": give --shard I/N, or --shard none for all rows";
    return std::nullopt;
  }
  return make_shard(*id - *first, *count, "SLURM_ARRAY_TASK_ID", error);
}

std::optional<SweepShard> from_kubernetes(const Environment& environment, std::string& error) {
  const auto index = variable(environment, "JOB_COMPLETION_INDEX", std::nullopt, error);
  const auto count = variable(environment, "JOB_COMPLETIONS", std::nullopt, error);
  if (!index || !count) {
    error +=
        ": a sweep in a Kubernetes Indexed Job needs JOB_COMPLETION_INDEX and "
        "JOB_COMPLETIONS, the job's `completions`; or give --shard";
    return std::nullopt;
  }
  return make_shard(*index, *count, "JOB_COMPLETION_INDEX", error);
}

}  // namespace

std::optional<SweepShard> choose_shard(const std::optional<std::string>& option,
                                       const Environment& environment, std::string& error) {
  if (option) return from_option(*option, error);
  if (environment("SLURM_ARRAY_TASK_ID")) return from_slurm(environment, error);
  if (environment("JOB_COMPLETION_INDEX")) return from_kubernetes(environment, error);
  return SweepShard{};
}

namespace {

/// A row's place in its grid.
struct RowPlace {
  std::size_t index = 0;
  std::size_t of = 0;
  std::string experiment;  ///< Which sweep of which grid; empty in rows of early builds.
};

/// Nothing when the head does not say it.
std::optional<RowPlace> row_place(std::string_view head) {
  constexpr std::string_view kIndex = "\",\"index\":";
  if (head.substr(std::min(head.size(), kKeyEnd), kIndex.size()) != kIndex) return std::nullopt;
  const nlohmann::json row = nlohmann::json::parse(std::string(head) + "}", nullptr, false);
  if (row.is_discarded() || !row.contains("index") || !row.contains("of") ||
      !row["index"].is_number_unsigned() || !row["of"].is_number_unsigned())
    return std::nullopt;
  const auto experiment = row.find("experiment");
  const bool named = experiment != row.end() && experiment->is_string();
  return RowPlace{.index = row["index"].get<std::size_t>(),
                  .of = row["of"].get<std::size_t>(),
                  .experiment = named ? experiment->get<std::string>() : std::string()};
}

}  // namespace

void check_rows(const std::string& file, std::string_view text, Diagnostics& diagnostics) {
  std::size_t rows = 0, of = 0;
  std::string_view rest = text;
  for (int number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::optional<StoredRow> row = parse_row(rest.substr(0, end));
    rest.remove_prefix(std::min(rest.size(), end + 1));
    if (!row) continue;
    const SourceLocation where{.file = file, .line = number, .column = 1};
    if (!row->is_intact) diagnostics.error(where, "", kDamagedRow);
    const std::optional<RowPlace> place = row_place(row->head);
    ++rows;
    if (place) of = place->of;
  }
  if (rows < of)
    diagnostics.warning({.file = file, .line = 1, .column = 1}, "",
                        "is partial: it has " + std::to_string(rows) + " of the " +
                            std::to_string(of) + " rows of the sweep",
                        "finish the sweep with --resume, or join its shards with --merge");
}

namespace {

std::string place_text(const SourceLocation& where) {
  return where.file + ":" + std::to_string(where.line);
}

/// Collects rows by their place in the grid.
class Merger {
 public:
  explicit Merger(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  void add(const RowFile& file) {
    std::string_view rest = file.text;
    for (int line = 1; !rest.empty(); ++line) {
      const std::size_t end = rest.find('\n');
      const SourceLocation where{.file = file.path, .line = line, .column = 1};
      if (end == std::string_view::npos) {
        diagnostics_.error(at(where, static_cast<int>(rest.size()) + 1), "", "the last row is torn",
                           "finish this shard with --resume first");
        return;
      }
      add_row(rest.substr(0, end), where);
      rest.remove_prefix(end + 1);
    }
  }

  std::string finish() {
    report_gaps();
    if (diagnostics_.has_errors()) return {};
    std::string text;
    for (const auto& [index, row] : rows_) text += row.line;
    return text;
  }

 private:
  struct Row {
    std::string line;  ///< The line of an unsharded sweep, with its line break.
    SourceLocation where;
  };

  static SourceLocation at(const SourceLocation& line, int column) {
    return {.file = line.file, .line = line.line, .column = column};
  }

  void add_row(std::string_view line, const SourceLocation& where) {
    const std::optional<StoredRow> row = parse_row(line);
    if (row && !row->is_intact) {
      diagnostics_.error(at(where, column_of(line, "checksum")), "", kDamagedRow,
                         "remove this line, and finish the shard with --resume");
      return;
    }
    const std::optional<RowPlace> place = row ? row_place(row->head) : std::nullopt;
    if (!row || !place) {
      diagnostics_.error(at(where, damage_column(line)), "", "is not a row of a sweep");
      return;
    }
    if (!of_) of_ = place->of;
    if (place->of != *of_ || place->index >= place->of) {
      diagnostics_.error(at(where, column_of(line, place->of != *of_ ? "of" : "index")), "",
                         "row " + std::to_string(place->index) + " of " +
                             std::to_string(place->of) + " among rows of a grid of " +
                             std::to_string(*of_),
                         "the files come from different sweeps");
      return;
    }
    if (first_.file.empty()) {
      first_ = where;
      experiment_ = place->experiment;
    }
    if (place->experiment == experiment_) {
      note(line, *row, place->index, where);
    } else if (strangers_.insert(where.file).second) {
      diagnostics_.error(
          at(where, column_of(line, "experiment")), "",
          "is a row of another experiment than " + place_text(first_),
          "shards have the same sweep file, --set, --seed, --replications and build");
    }
  }

  void note(std::string_view stored, const StoredRow& row, std::size_t index,
            const SourceLocation& where) {
    const std::string line = sealed_row(row.head, row.tail, {});
    const std::string& key = row.key;
    const auto [entry, is_new] = rows_.try_emplace(index, Row{.line = line, .where = where});
    const auto [same_key, new_key] = keys_.try_emplace(key, &entry->second);
    const Row& other = is_new ? *same_key->second : entry->second;
    if (is_new && new_key) return;
    const SourceLocation cell = at(where, column_of(stored, is_new ? "key" : "index"));
    if (other.line == line) {
      diagnostics_.warning(cell, "",
                           "the same row stands at " + place_text(other.where) + ": kept once");
      return;
    }
    const std::string what =
        is_new ? "key " + key : "row " + std::to_string(index) + " of the grid";
    diagnostics_.error(cell, "", what + " has another row at " + place_text(other.where),
                       "the files come from different builds or different sweeps");
  }

  void report_gaps() {
    if (!strangers_.empty()) return;  // Then missing rows are not reported.
    if (!of_) {
      diagnostics_.error({.file = "--merge"}, "", "there are no rows");
      return;
    }
    constexpr std::size_t kShown = 20;
    std::string missing;
    std::size_t count = 0;
    std::size_t ranges = 0;
    for (std::size_t i = 0; i < *of_; ++i) {
      if (rows_.contains(i)) continue;
      std::size_t last = i;
      while (last + 1 < *of_ && !rows_.contains(last + 1)) ++last;
      if (++ranges <= kShown) {
        missing.append(missing.empty() ? "" : ", ").append(std::to_string(i));
        if (last > i) missing.append("-").append(std::to_string(last));
      }
      count += last - i + 1;
      i = last;
    }
    if (ranges > kShown) missing += ", ...";
    if (count > 0)
      diagnostics_.error(
          {.file = "--merge"}, "",
          std::to_string(count) + " of " + std::to_string(*of_) + " rows are missing: " + missing,
          "is a shard's file not named, or a shard not finished?");
  }

  Diagnostics& diagnostics_;
  std::optional<std::size_t> of_;
  std::string experiment_;           ///< Experiment of the first row, which stands at `first_`.
  SourceLocation first_;             ///< Without a file before the first row.
  std::set<std::string> strangers_;  ///< Files with rows of other experiments, each named once.
  std::map<std::size_t, Row> rows_;
  std::map<std::string, const Row*> keys_;
};

}  // namespace

std::string merge_rows(const std::vector<RowFile>& files, Diagnostics& diagnostics) {
  Diagnostics found;
  Merger merger(found);
  for (const RowFile& file : files) merger.add(file);
  std::string text = merger.finish();
  for (const Diagnostic& d : found.items()) diagnostics.add(d);
  return text;
}

namespace {

/// A row under way.
struct ActiveRow {
  std::size_t row = 0;
  std::mutex mutex;  ///< Held while the plan is prepared and when a run is counted.
  std::shared_ptr<const sim::RunPlan> plan;
  std::vector<RunNumbers> runs;  ///< By replication.
  std::size_t left = 0;
};

struct Work {
  ActiveRow* active = nullptr;
  std::size_t replication = 0;
  double cost = 0;
};

class SweepRunner {
 public:
  SweepRunner(const SweepPlan& plan, const std::vector<std::size_t>& rows, const RowSink& sink,
              Experiment& experiment)
      : plan_(plan), sink_(sink), experiment_(experiment) {
    const auto replications = static_cast<std::size_t>(plan.config.replications);
    for (const std::size_t row : rows) {
      ActiveRow& active = *active_.emplace_back(std::make_unique<ActiveRow>());
      active.row = row;
      active.runs.resize(replications);
      active.left = replications;
      for (std::size_t r = 0; r < replications; ++r)
        work_.push_back({.active = &active, .replication = r, .cost = plan.rows[row].cost});
    }
    std::ranges::stable_sort(work_, [](const Work& a, const Work& b) { return a.cost > b.cost; });
    experiment.progress().questions = rows.size();
    for (const Work& work : work_) experiment.progress().cost += work.cost;
  }

  void run() {
    experiment_.each(work_.size(),
                     [this](std::size_t i, Diagnostics& found) { run(work_[i], found); });
  }

 private:
  void run(const Work& work, Diagnostics& found) {
    ActiveRow& active = *work.active;
    const std::shared_ptr<const sim::RunPlan> plan = plan_of(active, found);
    if (plan == nullptr) return;
    const SweepRow& row = plan_.rows[active.row];
    std::optional<sim::RunResult> result;
    try {
      result = experiment_.run(
          {.plan = *plan, .seed = row.seed + work.replication, .goals = goals_of(plan->scenario)},
          found);
    } catch (RunError& e) {
      e.diagnostic().message += ", in " + plan_.grid.label(plan_.grid.cells[row.cell]);
      throw;
    }
    if (!result) return;
    experiment_.progress().cost_done += work.cost;
    finish(active, work.replication, numbers_of(*result, plan_.metrics), found);
  }

  /// The row's plan, prepared by whoever needs it first.
  std::shared_ptr<const sim::RunPlan> plan_of(ActiveRow& active, Diagnostics& found) {
    const std::lock_guard lock(active.mutex);
    if (active.plan != nullptr) return active.plan;
    std::optional<sim::RunPlan> plan = prepare_row(plan_, plan_.rows[active.row], found);
    if (plan) active.plan = std::make_shared<const sim::RunPlan>(std::move(*plan));
    return active.plan;
  }

  void finish(ActiveRow& active, std::size_t replication, RunNumbers numbers, Diagnostics& found) {
    {
      const std::lock_guard lock(active.mutex);
      active.runs[replication] = std::move(numbers);
      if (--active.left > 0) return;
    }
    active.plan = nullptr;
    SweepRowRecord record = row_record(plan_, active.row, active.runs);
    active.runs = {};
    const std::lock_guard lock(sink_mutex_);
    if (experiment_.stopped()) return;
    const std::string error = sink_(active.row, std::move(record));
    if (!error.empty()) return found.error({}, "", error);
    ++experiment_.progress().answered;
    experiment_.tell();
  }

  const SweepPlan& plan_;
  const RowSink& sink_;
  Experiment& experiment_;
  std::vector<std::unique_ptr<ActiveRow>> active_;
  std::vector<Work> work_;
  std::mutex sink_mutex_;
};

}  // namespace

void run_rows(const SweepPlan& plan, const std::vector<std::size_t>& rows, const RowSink& sink,
              Experiment& experiment) {
  SweepRunner(plan, rows, sink, experiment).run();
}

}  // namespace routesim::tools
