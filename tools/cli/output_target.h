// Writing the results of a command where `--output` says.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cli/console.h"
#include "tools/cli/options.h"
#include "tools/results/output_file.h"

namespace routesim::tools {

/// Complains unless `error`, the answer of a write to `path`, is empty; false when it did.
bool finish_file(const std::string& path, const std::string& error, Console& console);

/// Before any work: every one of `outputs` (paths; empty = standard output) can be written, and is
/// neither another of them nor one of `inputs`. False, with messages, when something is wrong.
bool check_outputs(std::span<const std::string> outputs, std::span<const std::string> inputs,
                   Console& console);
bool check_outputs(const std::vector<Output>& outputs, std::span<const std::string> inputs,
                   Console& console);

/// Files that appear together: all of them, or, when one could not be written, none.
class OutputBatch {
 public:
  void add(const std::string& path, std::string_view content);
  /// Also one that was written elsewhere; it must outlive the batch.
  void add(OutputFile& file) { open_.push_back(&file); }
  /// Ends the writing. False, with messages, after some could not be written.
  bool close(Console& console);
  /// Lets them appear. False, with messages, after some could not.
  bool finish(Console& console);

 private:
  std::vector<std::unique_ptr<OutputFile>> own_;
  std::vector<OutputFile*> open_;  ///< All of them.
};

/// Prints a text, or writes it where `path` is not empty. False, with a message, when it could not.
bool write_text(const std::string& path, std::string_view text, Console& console);

/// The columns that a text of this output has: those of the terminal where it is printed, otherwise
/// 0.
std::size_t width_of(const Output& output, const Console& console);

/// Makes the text of a format, of `width` columns where it has lines.
using RenderOutput = std::function<std::string(const std::string& format, std::size_t width)>;

/// Renders and writes each: all files, or, after one could not be written, none. What is printed
/// has the width of the terminal. Files of partial results go to partial_path().
bool write_outputs(const std::vector<Output>& outputs, const RenderOutput& render, Console& console,
                   bool partial = false);

}  // namespace routesim::tools
