#include "api/body.hpp"

#include <algorithm>
#include <set>

#include "base/http/status.hpp"
#include "base/postgres/array_literal.hpp"
#include "base/text/json_grammar.hpp"
#include "base/text/json_members.hpp"
#include "base/text/parse_number.hpp"
#include "serve/media_type.hpp"
#include "serve/problem.hpp"
#include "text/id.hpp"

namespace pulse::console {
namespace {

using nlohmann::json;

constexpr const char* kTokenHeader = "Pulse-Token";

// Ids are strings, because numbers of 64 bits do not survive every reader.
bool has_id(const json& value) {
  return value.is_string() && is_id_text(value.get_ref<const std::string&>());
}

template <typename Test>
bool is_array_of(const json& value, Test test) {
  return value.is_array() && std::all_of(value.begin(), value.end(), test);
}

bool is_text(const json& value) { return value.is_string(); }

bool fits(const json& value, Is kind) {
  switch (kind) {
    case Is::text: return value.is_string();
    case Is::number: return value.is_number();
    case Is::integer: return value.is_number_integer();
    case Is::texts: return is_array_of(value, is_text);
    case Is::ids: return is_array_of(value, [](const json& each) { return has_id(each); });
    case Is::id: return has_id(value);
    case Is::truth: return value.is_boolean();
    case Is::document: return true;
  }
  return false;
}

const char* kind_text(Is kind) {
  switch (kind) {
    case Is::text: return "a string";
    case Is::number: return "a number";
    case Is::integer: return "an integer";
    case Is::texts: return "an array of strings";
    case Is::ids: return "an array of ids, which are strings of digits";
    case Is::id: return "an id, which is a string of digits";
    case Is::truth: return "true or false";
    case Is::document: break;
  }
  return "any value";
}

const Field& field_of(std::initializer_list<Field> fields, const std::string& name) {
  const auto* field = std::find_if(fields.begin(), fields.end(),
                                   [&](const Field& each) { return name == each.name; });
  if (field == fields.end()) {
    refuse(http_status::kUnprocessableContent, "there is no field '" + name + "'",
           "/v1/openapi.json has them.");
  }
  return *field;
}

void add_member(Body& body, const Field& field, std::string_view text) {
  if (field.kind == Is::document) {
    body.documents[field.name] = text;
    if (text == "null") body.documents.erase(field.name);
    return;
  }
  json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!value.is_null() && !fits(value, field.kind)) {
    refuse(http_status::kUnprocessableContent,
           std::string("'") + field.name + "' must be " + kind_text(field.kind));
  }
  body.fields[field.name] = std::move(value);
}

}  // namespace

std::optional<std::string> Body::document(const char* field) const {
  const auto found = documents.find(field);
  return found == documents.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string> Body::parameter(const char* field) const {
  const auto found = fields.find(field);
  if (found == fields.end() || found->is_null()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_array()) return found->dump();
  return array_literal(found->get<std::vector<std::string>>());
}

Body read_body(const Request& request, std::initializer_list<Field> fields) {
  Body body;
  if (!request.body.empty()) {
    if (media_type_of(request) != "application/json") {
      refuse(http_status::kUnsupportedMediaType, "the body must be application/json",
             "Send that as Content-Type.");
    }
    if (!is_json(request.body)) refuse(http_status::kBadRequest, "the body is no JSON");
    if (!is_json_object(request.body))
      refuse(http_status::kUnprocessableContent, "the body must be a JSON object");
    std::string_view key;
    std::string_view value;
    std::set<std::string> names;
    for (JsonMembers members(request.body); members.next(key, value);) {
      const std::string name = json_string_value('"' + std::string(key) + '"');
      // Readers of JSON differ in which of two members counts.
      if (!names.insert(name).second) {
        refuse(http_status::kBadRequest, "the member '" + name + "' comes twice",
               "Send each once.");
      }
      add_member(body, field_of(fields, name), value);
    }
  }
  for (const Field& field : fields) {
    if (field.is_required && !body.parameter(field.name)) {
      refuse(http_status::kUnprocessableContent, std::string("'") + field.name + "' is missing");
    }
  }
  return body;
}

std::string token_of(const Request& request) {
  const std::string& token = request.header("pulse-token");
  if (!parse_number<std::int64_t>(token)) {
    const char* const problem = token.empty() ? " is missing" : " is no token";
    refuse(http_status::kUnprocessableContent, std::string("the header ") + kTokenHeader + problem,
           "It has the token that the claim returned.");
  }
  return token;
}

}  // namespace pulse::console
