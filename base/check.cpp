#include "base/check.h"

namespace routesim {

void check_failed(const char* file, int line, const char* condition, const std::string& detail) {
  throw InternalError(std::string(file) + ":" + std::to_string(line) + ": broken invariant `" +
                      condition + "`: " + detail);
}

}  // namespace routesim
