// The changes of a queue, a schedule, a worker or a flow: a question, and the effect of the answer
// yes.
#include <array>
#include <cctype>
#include <string>

#include "pages/frame.hpp"
#include "pages/pages.hpp"

namespace pulse::console {
namespace {

struct Change {
  Path path;
  const char* verb;
  const char* noun;  // kind of the changed object; the object's name is the parameter of the
                     // address
  const char* effect;
  const char* call;  // with the object's name as parameter
  Path back;
  const char* no = nullptr;  // of a grave change: the answer that changes nothing

  bool is_grave() const { return no != nullptr; }
};

const std::array<Change, 9> kChanges{{
    {"/queues/pause", "Pause", "queue",
     "No job of the queue starts, and none of the queues within it, until it is resumed. Jobs that "
     "run go on.",
     "pulse.pause_queue($1)", "/queues"},
    {"/queues/resume", "Resume", "queue", "Its jobs start again.", "pulse.resume_queue($1)",
     "/queues"},
    {"/queues/unset", "Take the settings away from", "queue",
     "One job runs at a time, as in a queue without settings.", "pulse.unset_queue($1)", "/queues",
     "Keep the settings"},
    {"/schedules/pause", "Pause", "schedule", "It adds no job until it is resumed.",
     "pulse.pause_schedule($1)", "/schedules"},
    {"/schedules/resume", "Resume", "schedule", "It goes on with its next due time.",
     "pulse.resume_schedule($1)", "/schedules"},
    {"/schedules/run", "Run", "schedule", "It adds its job now. Its due times stay as they are.",
     "pulse.run_schedule_now($1)", "/schedules"},
    {"/workers/drain", "Drain", "worker",
     "It takes no more jobs, and ends when it has none. This cannot be taken back.",
     "pulse.drain_worker($1::text::bigint)", "/workers", "Let it take jobs"},
    {"/workers/stop", "Stop", "worker",
     "It ends now, and gives its jobs back. This cannot be taken back.",
     "pulse.stop_worker($1::text::bigint)", "/workers", "Let it run"},
    {"/flows/cancel", "Cancel", "flow",
     "Each of its jobs that has not ended is cancelled; running ones are asked to end.",
     "pulse.cancel_flow($1::text::bigint)", "/flows", "Keep the flow"},
}};

std::string with_small_first(std::string text) {
  text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

const char* section_of(const Change& change) { return change.back.text().data(); }

// The change and its record are one transaction. $1 of the call is the name of the changed object.
void change_on_record(const Request& request, const std::string& call, const std::string& action,
                      const char* noun, Params params) {
  const std::string after = std::to_string(params.size() + 1);
  const std::string sql = "WITH done AS MATERIALIZED (SELECT " + call +
                          ") SELECT pulse.note_operation($" + after + ", json_build_object($" +
                          std::to_string(params.size() + 2) + "::text, $1::text), $" +
                          std::to_string(params.size() + 3) + ") FROM done";
  params.insert(params.end(), {action, noun, request.access.token});
  request.database().query(sql.c_str(), params);
}

// The name of the changed object for a reader: a worker by name and not by id.
std::string name_for_reader(const Request& request, const Change& change, const std::string& name) {
  const bool is_worker = std::string_view(change.noun) == "worker";
  return is_worker ? worker_name(request.database(), name) : name;
}

Response ask_change(const Request& request, const Change& change) {
  const std::string& name = request.query.get(change.noun);
  const std::string verb(change.verb);
  const std::string known = name_for_reader(request, change, name);
  const std::string whole = verb + ' ' + change.noun + ' ' + known;
  const Markup content =
      form(request, Url(change.path).with(change.noun, name),
           {element("h1", "",
                    {verb, " ", change.noun, " ", element("em", "", known), " of ",
                     request.session->name(), "?"}),
            element("p", "", change.effect),
            answers({change.is_grave() ? whole : verb, change.is_grave(), Url(change.back),
                     change.is_grave() ? change.no : "Back"})});
  return shown_page(
      request, {verb + ' ' + change.noun, section_of(change), element("div", "question", content)});
}

Response make(const Request& request, const Change& change) {
  const std::string& name = request.query.get(change.noun);
  const std::string action = with_small_first(change.verb) + ' ' + change.noun;
  change_on_record(request, change.call, action, change.noun, {name});
  return see_other(Url(change.back).text());
}

const char* or_empty(const QueryResult& rows, const char* field, std::string& kept) {
  kept = rows.empty() ? "" : rows[0].optional_text(field).value_or("");
  return kept.c_str();
}

constexpr const char* kSettings =
    "SELECT concurrency, total, rate, extract(epoch FROM per)::float8 AS per, burst"
    " FROM pulse.queue_settings WHERE queue_name = $1";

// An empty field takes the limit away, but for concurrency, which every queue has.
constexpr const char* kSetQueue =
    "pulse.set_queue($1, concurrency => $2::int, total => $3::int, rate => $4::int,"
    " per => make_interval(secs => $5::float8), burst => $6::int)";

Response ask_limits(const Request& request) {
  const std::string& name = request.query.get("queue");
  const QueryResult rows = request.database().query(kSettings, {name});
  std::string kept;
  Markup content = element("h1", "", {"Limits of queue ", element("em", "", name)});
  content += element(
      "div", "fields",
      {field("Jobs at a time", "concurrency", or_empty(rows, "concurrency", kept),
             "of exactly this name; 1 where it is not set", "number"),
       field("In all at a time", "total", or_empty(rows, "total", kept),
             "of it and of all queues within it; empty: no limit", "number"),
       field("Rate", "rate", or_empty(rows, "rate", kept),
             "jobs that start in each period; empty: no limit", "number"),
       field("Period in seconds", "per", or_empty(rows, "per", kept), "1 where it is not set"),
       field("Burst", "burst", or_empty(rows, "burst", kept),
             "jobs at once after a pause; empty: as many as the rate", "number")});
  content += answers({"Set limits", false, Url("/queues")});
  return shown_page(request,
                    {"Limits of a queue", "/queues",
                     element("div", "question",
                             form(request, Url("/queues/limit").with("queue", name), content))});
}

Response set_limits(const Request& request) {
  const auto number = [&](const char* name,
                          std::optional<std::string> without) -> std::optional<std::string> {
    const std::string& text = request.form.get(name);
    return text.empty() ? std::move(without) : text;
  };
  const auto rate = number("rate", "-1");
  const bool has_rate = rate != "-1";
  change_on_record(
      request, kSetQueue, "limit queue", "queue",
      {request.query.get("queue"), number("concurrency", std::nullopt), number("total", "-1"), rate,
       has_rate ? number("per", std::nullopt) : std::nullopt,
       has_rate ? number("burst", "-1") : std::nullopt});
  return see_other(Url("/queues").text());
}

}  // namespace

void add_change_pages(Router& router) {
  for (const Change& change : kChanges) {
    const std::string path(change.path.text());
    router.add("GET", path, Need::act,
               [&change](const Request& request) { return ask_change(request, change); });
    router.add("POST", path, Need::act,
               [&change](const Request& request) { return make(request, change); });
  }
  router.add("GET", "/queues/limit", Need::act, ask_limits);
  router.add("POST", "/queues/limit", Need::act, set_limits);
}

}  // namespace pulse::console
