// Text from a user's file, made safe and short for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace routesim {

/// Control characters escaped (a config file must not be able to drive the terminal), line breaks
/// as `\n`, cut with `...` after `max_bytes`, never inside a UTF-8 character.
std::string printable(std::string_view text, std::size_t max_bytes = 60);

/// The same between single quotes.
std::string in_quotes(std::string_view text);

}  // namespace routesim
