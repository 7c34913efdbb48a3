// Values as Go's libraries write them, because that is what EndpointPickerConfig documents hold.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace routesim::policies {

/// time.ParseDuration: "300ms", "1.5s", "2m", "1h30m", "-1s", "0". Nothing when malformed or out of
/// the range of a Duration.
std::optional<Duration> parse_go_duration(std::string_view text);

/// strconv.ParseBool after lower-casing and trimming: 1, t, true, 0, f, false.
std::optional<bool> parse_go_bool(std::string_view text);

/// A Kubernetes quantity as a whole number: "500", "1k", "5Mi", "1e9", "2.5G". Nothing when
/// malformed, negative or above 2^63 - 1.
std::optional<std::int64_t> parse_quantity(std::string_view text);

/// std-base64 with padding (RFC 4648 section 4), strict.
std::optional<std::string> decode_base64(std::string_view text);
std::string encode_base64(std::string_view bytes);

}  // namespace routesim::policies
