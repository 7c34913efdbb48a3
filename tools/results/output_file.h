// Files that appear complete or not at all, and the signals that may end their writing.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace routesim::tools {

/// Writes everything; 0 or an errno.
int write_all(int descriptor, std::string_view text);

/// Writes a file so that it appears complete or not at all: a temporary file beside it, then a
/// rename. Pipes and devices are written in place, and links are followed. On failure returns what
/// went wrong.
std::string write_file(const std::string& path, std::string_view content);

/// A file of a folder: its path below the folder, and its content.
struct FolderFile {
  std::string name;
  std::string text;
};

/// Writes all files into the folder, which is made if need be, or none: they are written beside
/// their places first. Signals that end the process wait meanwhile. What went wrong, or nothing.
std::string write_folder(const std::string& folder, const std::vector<FolderFile>& files);

/// Why write_folder() would fail, as far as can be told without leaving a trace; nothing when it
/// would not.
std::string why_no_folder(const std::string& folder);

/// One spelling for every path that would write the same file: absolute, through links. A device
/// or a pipe, which takes any number of texts, is none.
std::string written_file(const std::string& path);

/// Why write_file() would fail, as far as can be told without writing; nothing when it would not.
std::string why_not_writable(const std::string& path);

/// The path for partial results, so that they neither replace a complete result nor pass for one:
/// PATH.partial, or `path` itself where it is a device or a pipe.
std::string partial_path(const std::string& path);

/// A file written piece by piece, with the same promise: it appears when finish() is called, or not
/// at all. The first error is kept and ends the writing.
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view text);
  /// Ends the writing; the file does not appear yet. What went wrong, or nothing.
  std::string close();
  /// The content is partial: finish() lets it appear at partial_path().
  void mark_partial();
  /// Returns the error, or nothing.
  std::string finish();
  /// The error so far, or nothing.
  const std::string& error() const { return error_; }
  const std::string& path() const { return path_; }

 private:
  void fail(int error);

  std::string path_;
  std::string target_;     ///< The file that `path_` names, through symbolic links.
  std::string temporary_;  ///< Empty when written in place.
  std::string error_;
  int descriptor_ = -1;
  std::size_t slot_ = 0;  ///< Where a signal handler finds the temporary file.
  bool closed_reader_ = false;
};

/// Makes SIGINT, SIGTERM and SIGHUP end the process with code 130 after removing a half-written
/// temporary file, and a closed pipe and a file that grows past its limit ordinary write errors.
void install_signal_handlers();

/// While it lives, the first SIGINT or SIGTERM sets `stop` instead, so that the command can end in
/// good order; the second one ends the process.
class InterruptGuard {
 public:
  explicit InterruptGuard(std::atomic<bool>& stop);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

}  // namespace routesim::tools
