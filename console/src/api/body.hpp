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
  // The documents as sent: PostgreSQL stores the text of a JSON document.
  std::map<std::string, std::string, std::less<>> documents;

  // All fields but the documents, as JSON for a function of the server.
  std::string text() const { return fields.dump(); }
  // For a parameter of a statement; an array in PostgreSQL's notation.
  std::optional<std::string> document(const char* field) const;
  std::optional<std::string> parameter(const char* field) const;
};

// Reads the body, an object with these fields; an empty body is an object without any field. A
// field that is null counts as absent. Throws Failed for anything else, and names the field.
Body read_body(const Request& request, std::initializer_list<Field> fields);

// The claim's token, from the header Pulse-Token.
std::string token_of(const Request& request);

}  // namespace pulse::console
