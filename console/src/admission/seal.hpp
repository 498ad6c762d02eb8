// A text that only the owner of a key can read, or make (AES-256-GCM).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pulse::console {

// `key` has 32 bytes. The seal holds for `beside`, too, which stays readable beside the seal.
std::string seal(std::string_view key, std::string_view text, std::string_view beside);

// Nothing for a seal of another key, of another text beside the seal, or with a changed bit.
std::optional<std::string> open_seal(std::string_view key, std::string_view sealed,
                                     std::string_view beside);

}  // namespace pulse::console
