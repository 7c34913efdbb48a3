#include "tools/results/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

namespace routesim::tools {

namespace {

/// Paths of the temporary files that a signal must remove; empty where there is none. Plain arrays,
/// because a signal handler may not touch a std::string.
std::array<std::array<char, 4096>, 32> g_temporaries{};

/// The exit code of a process that SIGINT ended, as shells say it (128 + 2).
constexpr int kInterruptedExit = 130;

/// The flag that the first signal sets under an InterruptGuard. Lock-free, so handlers may use it.
std::atomic<std::atomic<bool>*> g_stop{nullptr};
static_assert(std::atomic<std::atomic<bool>*>::is_always_lock_free);

/// A folder is being written: the signal that came meanwhile acts afterwards.
std::atomic<bool> g_waiting{false}, g_came{false};

void end_with(std::string_view message) {
  std::atomic<bool>* const stop = g_stop.load();
  if (stop != nullptr && !stop->exchange(true)) return;
  for (const auto& path : g_temporaries)
    if (path[0] != '\0') ::unlink(path.data());
  const ssize_t ignored = ::write(STDERR_FILENO, message.data(), message.size());
  (void)ignored;
  ::_exit(kInterruptedExit);
}

void end_interrupted(int /*signal*/) {
  if (g_waiting.load())
    g_came.store(true);
  else
    end_with("\nroutesim: interrupted, no results were written\n");
}

bool is_ordinary_target(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode);
}

/// The file that a path names through symbolic links: a rename would replace the link, not the file
/// behind it. A circle of links is left as it is.
std::string link_target(const std::string& path) {
  constexpr int kMostLinks = 40;
  std::filesystem::path target = path;
  std::error_code error;
  for (int i = 0; std::filesystem::is_symlink(target, error); ++i) {
    const std::filesystem::path link = std::filesystem::read_symlink(target, error);
    if (error || i == kMostLinks) return path;
    target = link.is_absolute() ? link : target.parent_path() / link;
  }
  return target.string();
}

}  // namespace

int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(descriptor, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

OutputFile::OutputFile(std::string path) : path_(std::move(path)), target_(link_target(path_)) {
  if (!is_ordinary_target(path_)) {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail(errno);
    return;
  }
  temporary_ = target_ + ".tmp-" + std::to_string(::getpid());
  while (slot_ < g_temporaries.size() && g_temporaries[slot_][0] != '\0') ++slot_;
  if (slot_ == g_temporaries.size() || temporary_.size() >= g_temporaries[slot_].size()) {
    temporary_.clear();
    error_ = slot_ == g_temporaries.size() ? "too many files are open" : "the path is too long";
    return;
  }
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    fail(errno);
    temporary_.clear();
    return;
  }
  std::memcpy(g_temporaries[slot_].data(), temporary_.c_str(), temporary_.size() + 1);
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (temporary_.empty()) return;
  ::unlink(temporary_.c_str());
  g_temporaries[slot_][0] = '\0';
}

void OutputFile::fail(int error) {
  // A reader that has gone away is content with what it got.
  if (temporary_.empty() && error == EPIPE) {
    closed_reader_ = true;
  } else {
    error_ = std::strerror(error);
  }
}

void OutputFile::write(std::string_view text) {
  if (descriptor_ < 0 || closed_reader_ || !error_.empty()) return;
  const int error = write_all(descriptor_, text);
  if (error != 0) fail(error);
}

std::string OutputFile::close() {
  if (descriptor_ < 0) return error_;
  // A full disk may only show when the file is closed.
  if (::close(descriptor_) != 0 && error_.empty()) fail(errno);
  descriptor_ = -1;
  return error_;
}

void OutputFile::mark_partial() { target_ = partial_path(target_); }

std::string OutputFile::finish() {
  (void)close();
  if (temporary_.empty() || !error_.empty()) return error_;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
    fail(errno);
    return error_;
  }
  g_temporaries[slot_][0] = '\0';
  temporary_.clear();
  return error_;
}

std::string partial_path(const std::string& path) {
  return is_ordinary_target(path) ? path + ".partial" : path;
}

std::string written_file(const std::string& path) {
  if (!is_ordinary_target(path)) return {};
  std::error_code error;
  const std::filesystem::path file =
      std::filesystem::weakly_canonical(std::filesystem::absolute(link_target(path)), error);
  return error ? path : file.lexically_normal().string();
}

std::string why_not_writable(const std::string& path) {
  std::error_code error;  // A path that cannot even be looked at is no folder; opening it says why.
  if (std::filesystem::is_directory(path, error)) return std::strerror(EISDIR);
  // Opening a pipe would wait for its reader.
  return is_ordinary_target(path) ? OutputFile(path).error() : std::string();
}

std::string write_file(const std::string& path, std::string_view content) {
  OutputFile file(path);
  file.write(content);
  return file.finish();
}

namespace {

/// While it lives, signals that end the process wait. A mask would not do: another thread takes
/// the signal then.
class SignalsWait {
 public:
  SignalsWait() { g_waiting.store(true); }
  ~SignalsWait() {
    g_waiting.store(false);
    if (g_came.exchange(false)) end_with("\nroutesim: interrupted, no file is half written\n");
  }
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;
};

/// Makes folders, and removes those it made again unless they are to stay.
class NewFolders {
 public:
  ~NewFolders() {
    std::error_code ignored;
    for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder)
      std::filesystem::remove(*folder, ignored);
  }
  NewFolders() = default;
  NewFolders(const NewFolders&) = delete;
  NewFolders& operator=(const NewFolders&) = delete;

  std::string make(const std::filesystem::path& folder) {
    std::filesystem::path so_far;
    for (const std::filesystem::path& part : folder) {
      so_far /= part;
      std::error_code error;
      if (std::filesystem::create_directory(so_far, error)) made_.push_back(so_far);
      if (error && !std::filesystem::is_directory(so_far)) return error.message();
    }
    return {};
  }
  void keep() { made_.clear(); }

 private:
  std::vector<std::filesystem::path> made_;
};

/// Writes the files below `beside`, then moves them to their places.
std::string write_beside(const std::filesystem::path& folder, const std::filesystem::path& beside,
                         const std::vector<FolderFile>& files, NewFolders& folders) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (const FolderFile& file : files) {
    fs::create_directories((beside / file.name).parent_path(), error);
    std::string why =
        error ? error.message() : write_file((beside / file.name).string(), file.text);
    if (why.empty() && fs::is_directory(folder / file.name, error)) why = std::strerror(EISDIR);
    if (!why.empty()) return file.name + ": " + why;
  }
  for (const FolderFile& file : files) {
    if (std::string why = folders.make((folder / file.name).parent_path()); !why.empty())
      return why;
    fs::rename(beside / file.name, folder / file.name, error);
    if (error) return file.name + ": " + error.message();
  }
  folders.keep();
  return {};
}

}  // namespace

std::string write_folder(const std::string& folder, const std::vector<FolderFile>& files) {
  const SignalsWait no_signal;
  NewFolders folders;
  if (std::string why = folders.make(folder); !why.empty()) return why;
  const std::filesystem::path beside =
      std::filesystem::path(folder) / (".tmp-" + std::to_string(::getpid()));
  const std::string why = write_beside(folder, beside, files, folders);
  std::error_code ignored;
  std::filesystem::remove_all(beside, ignored);
  return why;
}

std::string why_no_folder(const std::string& folder) {
  NewFolders folders;
  const std::string why = folders.make(folder);
  return why.empty() ? why_not_writable((std::filesystem::path(folder) / "report").string()) : why;
}

InterruptGuard::InterruptGuard(std::atomic<bool>& stop) { g_stop.store(&stop); }
InterruptGuard::~InterruptGuard() { g_stop.store(nullptr); }

void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = &end_interrupted;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  // nohup(1) ignores it on purpose.
  struct sigaction hangup {};
  if (::sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
    ::sigaction(SIGHUP, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace routesim::tools
