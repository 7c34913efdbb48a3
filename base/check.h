// Internal invariants. A user can never trigger these: wrong input is a Diagnostic, a broken
// invariant is a bug of ours and ends the run with exit code 3.
#pragma once

#include <stdexcept>
#include <string>

namespace routesim {

/// Thrown when an internal invariant does not hold. The message names file, line and condition.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& detail);

}  // namespace routesim

/// Always on. For conditions that cost little next to the work they guard.
#define ROUTESIM_CHECK(condition, detail)                                 \
  do {                                                                    \
    if (!(condition)) [[unlikely]]                                        \
      ::routesim::check_failed(__FILE__, __LINE__, #condition, (detail)); \
  } while (false)

/// On in debug and sanitizer builds only: for hot paths.
#ifndef NDEBUG
#define ROUTESIM_DCHECK(condition, detail) ROUTESIM_CHECK(condition, detail)
#else
#define ROUTESIM_DCHECK(condition, detail) \
  do {                                     \
  } while (false)
#endif
