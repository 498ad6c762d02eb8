#include "admission/seal.hpp"

#include <openssl/evp.h>

#include <memory>
#include <stdexcept>

#include "admission/digest.hpp"

namespace pulse::console {
namespace {

constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kNonceBytes = 12;
constexpr std::size_t kTagBytes = 16;

using Cipher =
    std::unique_ptr<EVP_CIPHER_CTX, decltype([](EVP_CIPHER_CTX* it) { EVP_CIPHER_CTX_free(it); })>;

const unsigned char* in(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

unsigned char* out(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

Cipher cipher_of(std::string_view key) {
  Cipher cipher(EVP_CIPHER_CTX_new());
  if (!cipher || key.size() != kKeyBytes) throw std::runtime_error("no AES-256-GCM");
  return cipher;
}

}  // namespace

std::string seal(std::string_view key, std::string_view text, std::string_view beside) {
  const Cipher cipher = cipher_of(key);
  const std::string nonce = random_bytes(kNonceBytes);
  std::string sealed(text.size(), '\0');
  std::string tag(kTagBytes, '\0');
  int length = 0;
  if (EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, in(key), in(nonce)) != 1 ||
      EVP_EncryptUpdate(cipher.get(), nullptr, &length, in(beside),
                        static_cast<int>(beside.size())) != 1 ||
      EVP_EncryptUpdate(cipher.get(), out(sealed), &length, in(text),
                        static_cast<int>(text.size())) != 1 ||
      EVP_EncryptFinal_ex(cipher.get(), out(tag), &length) != 1 ||
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, tag.data()) != 1) {
    throw std::runtime_error("no AES-256-GCM");
  }
  return nonce + sealed + tag;
}

std::optional<std::string> open_seal(std::string_view key, std::string_view sealed,
                                     std::string_view beside) {
  const Cipher cipher = cipher_of(key);
  if (sealed.size() < kNonceBytes + kTagBytes) return std::nullopt;
  const std::string_view nonce = sealed.substr(0, kNonceBytes);
  std::string tag(sealed.substr(sealed.size() - kTagBytes));
  sealed = sealed.substr(kNonceBytes, sealed.size() - kNonceBytes - kTagBytes);
  std::string text(sealed.size(), '\0');
  int length = 0;
  if (EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, in(key), in(nonce)) != 1 ||
      EVP_DecryptUpdate(cipher.get(), nullptr, &length, in(beside),
                        static_cast<int>(beside.size())) != 1 ||
      EVP_DecryptUpdate(cipher.get(), out(text), &length, in(sealed),
                        static_cast<int>(sealed.size())) != 1 ||
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, tag.data()) != 1) {
    throw std::runtime_error("no AES-256-GCM");
  }
  // Compares the tags in constant time; until then nothing of the text counts.
  if (EVP_DecryptFinal_ex(cipher.get(), out(tag), &length) != 1) return std::nullopt;
  return text;
}

}  // namespace pulse::console
