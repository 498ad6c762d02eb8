#include "admission/digest.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <array>
#include <stdexcept>

namespace pulse::console {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

}  // namespace

std::string hexadecimal(std::string_view bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text += kDigits[value >> 4U];
    text += kDigits[value & 15U];
  }
  return text;
}

std::optional<std::string> bytes_of(std::string_view hexadecimal) {
  if (hexadecimal.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(hexadecimal.size() / 2);
  for (std::size_t i = 0; i < hexadecimal.size(); i += 2) {
    const std::size_t high = kDigits.find(hexadecimal[i]);
    const std::size_t low = kDigits.find(hexadecimal[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    bytes += static_cast<char>(high << 4U | low);
  }
  return bytes;
}

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) != 1) {
    throw std::runtime_error("no random numbers");
  }
  return bytes;
}

std::string random_secret() { return hexadecimal(random_bytes(32)); }

std::string sha256(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("no SHA-256");
  }
  return hexadecimal({reinterpret_cast<const char*>(digest.data()), length});
}

std::string authentication_code(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> code{};
  unsigned length = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), code.data(),
           &length) == nullptr) {
    throw std::runtime_error("no HMAC");
  }
  return {reinterpret_cast<const char*>(code.data()), length};
}

bool are_same(std::string_view one, std::string_view other) {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace pulse::console
