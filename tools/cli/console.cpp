#include "tools/cli/console.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/text.h"
#include "tools/cli/inputs.h"
#include "tools/results/output_file.h"

namespace routesim::tools {

void Console::complain(const Diagnostics& diagnostics) {
  std::string text;
  std::size_t shown = 0;
  for (const Diagnostic& d : diagnostics.items()) {
    if (++shown > kMostShown) break;
    text += to_string(d) + "\n";
  }
  const std::size_t all = diagnostics.items().size();
  if (all > kMostShown) text += "... and " + std::to_string(all - kMostShown) + " more\n";
  if (!text.empty()) complain(with_shown_paths(std::move(text)));
}

void SystemConsole::complain(std::string_view text) {
  (void)write_all(STDERR_FILENO, escaped(text, "\n\t"));
}

void SystemConsole::draw(std::string_view text) { (void)write_all(STDERR_FILENO, text); }

namespace {

bool is_terminal(int file) {
  const char* const terminal = std::getenv("TERM");
  return ::isatty(file) == 1 && terminal != nullptr && std::strcmp(terminal, "dumb") != 0;
}

}  // namespace

bool SystemConsole::error_is_terminal() const { return is_terminal(STDERR_FILENO); }

bool SystemConsole::output_is_terminal() const { return is_terminal(output_file_); }

std::size_t SystemConsole::output_width() const {
  constexpr unsigned short kNarrowest = 40;
  winsize size{};
  if (!output_is_terminal() || ::ioctl(output_file_, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col == 0 ? 0 : std::max(size.ws_col, kNarrowest);
}

void SystemConsole::divert_output() {
  const int kept = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (kept < 0) return;
  output_file_ = kept;
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
}

bool SystemConsole::flush() {
  const int error = write_all(output_file_, output());
  if (error == 0 || error == EPIPE) return true;
  complain(std::string("routesim: cannot write to standard output: ") + std::strerror(error) +
           "\n");
  return false;
}

}  // namespace routesim::tools
