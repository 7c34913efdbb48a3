#include "base/key_note.h"

#include <utility>

namespace routesim {

KeyUse key_use(SourceLocation where, std::string_view format, std::string path, Fate fate,
               std::string_view why, bool is_off) {
  const bool is_moot = is_off && fate == Fate::kNotModelled;
  return {.where = std::move(where),
          .format = format,
          .path = std::move(path),
          .fate = is_moot ? Fate::kNoEffect : fate,
          .why = std::string(is_moot ? "it is switched off" : why)};
}

}  // namespace routesim
