// Makes the entries of the ledger of keys.
#pragma once

#include <string>
#include <string_view>

#include "base/diagnostic.h"

namespace routesim {

/// The entry of one key. `is_off` says that its value switches nothing on: what is not modelled has
/// no effect then.
KeyUse key_use(SourceLocation where, std::string_view format, std::string path, Fate fate,
               std::string_view why, bool is_off = false);

}  // namespace routesim
