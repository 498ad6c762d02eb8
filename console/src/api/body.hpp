// The JSON documents that clients send.
#pragma once

#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "serve/request.hpp"

namespace pulse::console {

enum class Is { text, number, integer, texts, ids, id, truth, document };

struct Field {
  const char* name;
  Is kind;
  bool is_required = false;
};

struct Body {
  nlohmann::json fields = nlohmann::json::object();
  // As they were written: PostgreSQL stores JSON of which no program needs to make sense.
  std::map<std::string, std::string, std::less<>> documents;

  // All but the documents, for the server to read.
  std::string text() const { return fields.dump(); }
  // As parameters of a statement: an array is one of the server's.
  std::optional<std::string> document(const char* field) const;
  std::optional<std::string> parameter(const char* field) const;
};

// The body, an object of these fields; an empty body is an object without any. A field may be null,
// which is as if it were not there. Throws Failed for anything else, and names the field.
Body read_body(const Request& request, std::initializer_list<Field> fields);

// The claim's token, from the header Pulse-Token.
std::string token_of(const Request& request);

}  // namespace pulse::console
