// One line per request, written while the run lasts: memory does not grow with it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/observe/observer.h"
#include "tools/results/output_file.h"

namespace routesim::tools {

/// How `--records PATH` writes: told from the path's suffix.
enum class RecordFormat { kCsv, kJsonLines };
/// Nothing when the suffix is neither `.csv` nor `.jsonl`.
std::optional<RecordFormat> record_format(const std::string& path);

/// The columns, in order; tools/README.md says what each means. CSV leaves a field empty that does
/// not apply, JSON lines leave the key out.
const std::vector<std::string>& record_columns();

/// Streams the requests of several runs, one after the other, in the order they end.
class RecordWriter final : public sim::Observer {
 public:
  /// `file` outlives this.
  RecordWriter(OutputFile& file, RecordFormat format);

  /// The records that follow belong to this variant.
  void begin_variant(const std::string& name) { variant_ = name; }
  /// Says in the last line that the run was interrupted.
  void mark_partial();
  void on_start(const sim::RunView& view) override;
  void on_done(const sim::RequestRecord& record) override;
  void on_end(SimTime) override { flush(); }

 private:
  void flush();

  OutputFile& file_;
  RecordFormat format_;
  std::string variant_;
  std::vector<std::string> endpoints_, stages_, adapters_;
  std::vector<std::string> classes_;
  std::string buffer_;
};

}  // namespace routesim::tools
