// The JSON documents that clients send.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "serve/request.hpp"

namespace pulse::console {

enum class Is { text, number, integer, texts, ids, id, truth, anything };

struct Field {
  const char* name;
  Is kind;
  bool is_required = false;
};

// The body, an object of these fields; an empty body is an object without any. A field may be null,
// which is as if it were not there. Throws Failed for anything else, and names the field.
nlohmann::json read_body(const Request& request, std::initializer_list<Field> fields);

// What the server reads: the body as it was sent, so that no digit of a number is lost.
std::string document_of(const Request& request);

// A field of read_body() as a parameter of a statement: an array is one of the server's.
std::optional<std::string> parameter_of(const nlohmann::json& body, const char* field);

// Of an id in a path: digits that 64 bits hold. Throws Failed for what can be no id.
std::string id_in_path(const Request& request);

// The claim's token, from the header Pulse-Token.
std::string token_of(const Request& request);

}  // namespace pulse::console
