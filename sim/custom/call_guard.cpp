#include "sim/custom/call_guard.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

namespace routesim::sim {
namespace {

constexpr std::size_t kMostThreads = 256;
constexpr int kFailed = 3;  ///< The exit code: no expectation failed, but the run did.

/// The call that one thread is in.
struct alignas(64) Slot {
  std::atomic<std::uint64_t> calls{0};  ///< Odd during a call.
  // Facts about the last call:
  std::atomic<const WatchedCode*> code{nullptr};
  std::atomic<const char*> is{nullptr};  ///< Null for a decision.
  std::atomic<std::uint64_t> request{0};
};

std::array<Slot, kMostThreads> slots;
std::atomic<std::size_t> threads{0};

Slot& own_slot() {
  thread_local Slot& slot = slots[threads.fetch_add(1) % kMostThreads];
  return slot;
}

/// Writes without allocating, since it also runs in signal handlers, and ends the process.
[[noreturn]] void die(const Slot& slot, const char* what) {
  std::array<char, 1024> line;
  std::size_t n = 0;
  const auto put = [&](const char* text) {
    const std::size_t length = std::min(std::strlen(text), line.size() - n);
    std::memcpy(line.data() + n, text, length);
    n += length;
  };
  put("routesim: error: routing.library: ");
  put(slot.code.load()->name.c_str());
  put(what);
  if (const char* const is = slot.is.load(); is != nullptr) {
    put(" while it was ");
    put(is);
  } else {
    std::array<char, 24> digits{};
    std::to_chars(digits.data(), digits.data() + digits.size() - 1, slot.request.load());
    put(" while it decided request ");
    put(digits.data());
  }
  put("\n");
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), n);
  _exit(kFailed);
}

void die_in_a_call(const char* what) {
  for (std::size_t i = 0; i < std::min(threads.load(), kMostThreads); ++i)
    if (slots[i].calls.load() % 2 == 1) die(slots[i], what);
}

void on_crash(int signal) {
  die_in_a_call(" crashed");
  std::signal(signal, SIG_DFL);  // Not in a call, so it is a fault of ours.
  std::raise(signal);
}

/// exit() of a policy would pass for a run that succeeded.
void on_exit_of_process() { die_in_a_call(" ended the process"); }

/// A call has blocked when its thread shows the same odd count for the whole time.
[[noreturn]] void watch_calls() {
  std::array<std::uint64_t, kMostThreads> seen{};
  std::array<std::int64_t, kMostThreads> waited{};
  constexpr std::int64_t kPeriod = 50;
  while (true) {
    ::usleep(kPeriod * 1'000);
    for (std::size_t i = 0; i < std::min(threads.load(), kMostThreads); ++i) {
      const std::uint64_t calls = slots[i].calls.load();
      waited[i] = calls % 2 == 1 && calls == seen[i] ? waited[i] + kPeriod : 0;
      seen[i] = calls;
      if (waited[i] > 0 && Duration::milliseconds(waited[i]) >= slots[i].code.load()->timeout)
        die(slots[i], " did not return in time (routing.library.call_timeout)");
    }
  }
}

void begin_call(const WatchedCode& code, const char* is, std::uint64_t request) {
  Slot& slot = own_slot();
  slot.code.store(&code, std::memory_order_relaxed);
  slot.is.store(is, std::memory_order_relaxed);
  slot.request.store(request, std::memory_order_relaxed);
  slot.calls.fetch_add(1, std::memory_order_release);
}

}  // namespace

void CallGuard::watch() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT})
      std::signal(signal, &on_crash);
    std::atexit(&on_exit_of_process);
    std::thread(&watch_calls).detach();
  });
}

CallGuard::CallGuard(const WatchedCode& code, std::uint64_t request) {
  begin_call(code, nullptr, request);
}

CallGuard::CallGuard(const WatchedCode& code, const char* is) { begin_call(code, is, 0); }

CallGuard::~CallGuard() { own_slot().calls.fetch_add(1, std::memory_order_release); }

}  // namespace routesim::sim
