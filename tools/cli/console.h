// The process's streams. Standard output is collected and written once, at the end, so that a run
// that fails prints nothing there; standard error is written at once.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/diagnostic.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

class Console {
 public:
  virtual ~Console() = default;

  /// Adds to standard output.
  void print(std::string_view text) { out_ += text; }
  /// The text that standard output holds so far.
  const std::string& output() const { return out_; }
  /// Forgets it: nothing goes to standard output when a command fails on its input.
  void discard_output() {
    if (!keep_) out_.clear();
  }
  /// Standard output is wanted whatever the exit code.
  void keep_output() { keep_ = true; }

  /// Writes to standard error now, control characters other than line breaks and tabs escaped.
  virtual void complain(std::string_view text) = 0;
  /// The same with its control characters, which must be ours: a line that is drawn over.
  virtual void draw(std::string_view text) { complain(text); }
  /// Each diagnostic, at most `kMostShown` of them, then how many more there are.
  void complain(const Diagnostics& diagnostics);
  static constexpr std::size_t kMostShown = 200;

  /// Other code of the process prints to standard error from now on.
  virtual void divert_output() {}

  /// Whether standard error is a terminal that understands cursor control.
  virtual bool error_is_terminal() const = 0;
  /// The same of standard output.
  virtual bool output_is_terminal() const { return false; }
  /// The columns of its terminal; 0 without one.
  virtual std::size_t output_width() const { return 0; }

 private:
  std::string out_;
  bool keep_ = false;
};

/// The real streams.
class SystemConsole final : public Console {
 public:
  void complain(std::string_view text) override;
  using Console::complain;
  void draw(std::string_view text) override;
  bool error_is_terminal() const override;
  bool output_is_terminal() const override;
  std::size_t output_width() const override;
  void divert_output() override;
  /// Writes what was printed. False, with a message on standard error, when it could not be
  /// written; a reader that has gone away (a closed pipe) is not an error.
  bool flush();

 private:
  int output_file_ = 1;
};

}  // namespace routesim::tools
