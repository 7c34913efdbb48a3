// `--output FORMAT[=PATH]`, repeatable.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cli/console.h"

namespace routesim::tools {

struct NamedOutput {
  std::string format;  ///< One of the command's formats.
  std::string path;    ///< Empty = standard output.
};

/// One `FORMAT` or `FORMAT=PATH`; a path of `-` is standard output. On error sets `error`.
std::optional<NamedOutput> parse_named_output(const std::string& text,
                                              std::span<const std::string_view> formats,
                                              std::string& error);

/// What is wrong when two outputs go to one of these paths (empty = standard output); "" when every
/// output has a place of its own.
std::string shared_place(std::span<const std::string> paths);

/// The first of `formats` goes to standard output when nothing is asked for; two on standard output
/// or in one file are an error. On error sets `error` and returns nothing.
std::optional<std::vector<NamedOutput>> parse_named_outputs(
    const std::vector<std::string>& texts, std::span<const std::string_view> formats,
    std::string& error);

/// Complains unless `error`, the answer of a write to `path`, is empty; false when it did.
bool finish_file(const std::string& path, const std::string& error, Console& console);

/// Before any work: every one of `outputs` (paths; empty = standard output) can be written, and is
/// neither another of them nor one of `inputs`. False, with messages, when something is wrong.
bool check_outputs(std::span<const std::string> outputs, std::span<const std::string> inputs,
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

/// Renders and writes each; false, with a message on standard error, after one could not be.
bool write_named_outputs(const std::vector<NamedOutput>& outputs,
                         const std::function<std::string(const std::string& format)>& render,
                         Console& console);

}  // namespace routesim::tools
