#include "tools/cli/console.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tools/cli/exit_code.h"

namespace routesim::tools {

namespace {

/// Path of the temporary file that a signal must remove; empty when there is none. A plain array,
/// because a signal handler may not touch a std::string.
std::array<char, 4096> g_temporary{};

/// What the first signal sets while an InterruptGuard lives. Lock-free, so a handler may use it.
std::atomic<std::atomic<bool>*> g_stop{nullptr};
static_assert(std::atomic<std::atomic<bool>*>::is_always_lock_free);

void end_interrupted(int /*signal*/) {
  std::atomic<bool>* const stop = g_stop.load();
  if (stop != nullptr && !stop->exchange(true)) return;
  constexpr char kMessage[] = "\nroutesim: interrupted, no results were written\n";
  if (g_temporary[0] != '\0') ::unlink(g_temporary.data());
  const ssize_t ignored = ::write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
  (void)ignored;
  ::_exit(static_cast<int>(ExitCode::kInterrupted));
}

/// Writes everything; 0 or an errno.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(descriptor, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

bool is_ordinary_target(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode);
}

std::string write_in_place(const std::string& path, std::string_view content) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) return std::strerror(errno);
  const int error = write_all(descriptor, content);
  ::close(descriptor);
  return error == 0 || error == EPIPE ? std::string() : std::strerror(error);
}

}  // namespace

void Console::complain(const Diagnostics& diagnostics) {
  std::string text;
  std::size_t shown = 0;
  for (const Diagnostic& d : diagnostics.items()) {
    if (++shown > kMostShown) break;
    text += to_string(d) + "\n";
  }
  const std::size_t all = diagnostics.items().size();
  if (all > kMostShown) text += "... and " + std::to_string(all - kMostShown) + " more\n";
  if (!text.empty()) complain(text);
}

void SystemConsole::complain(std::string_view text) { (void)write_all(STDERR_FILENO, text); }

bool SystemConsole::error_is_terminal() const {
  const char* const terminal = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && terminal != nullptr && std::strcmp(terminal, "dumb") != 0;
}

bool SystemConsole::flush() {
  const int error = write_all(STDOUT_FILENO, output());
  if (error == 0 || error == EPIPE) return true;
  complain(std::string("routesim: cannot write to standard output: ") + std::strerror(error) +
           "\n");
  return false;
}

std::string write_file(const std::string& path, std::string_view content) {
  if (!is_ordinary_target(path)) return write_in_place(path, content);
  const std::string temporary = path + ".tmp-" + std::to_string(::getpid());
  if (temporary.size() >= g_temporary.size()) return "the path is too long";
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) return std::strerror(errno);
  std::memcpy(g_temporary.data(), temporary.c_str(), temporary.size() + 1);
  int error = write_all(descriptor, content);
  // A full disk may only show when the file is closed.
  if (::close(descriptor) != 0 && error == 0) error = errno;
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) ::unlink(temporary.c_str());
  g_temporary[0] = '\0';
  return error == 0 ? std::string() : std::strerror(error);
}

InterruptGuard::InterruptGuard(std::atomic<bool>& stop) { g_stop.store(&stop); }
InterruptGuard::~InterruptGuard() { g_stop.store(nullptr); }

void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = &end_interrupted;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

}  // namespace routesim::tools
