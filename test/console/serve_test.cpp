// What pulse serve decides about a request before it reaches the database.
#include <gtest/gtest.h>

#include <future>
#include <latch>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "admission/digest.hpp"
#include "admission/tokens.hpp"
#include "api/body.hpp"
#include "base/text/percent.hpp"
#include "serve/router.hpp"
#include "service/live.hpp"
#include "service/prefix.hpp"
#include "service/read_request.hpp"
#include "service/thread_pool.hpp"

namespace pulse::console {
namespace {

Response named(const std::string& name) { return {.body = name}; }

Router small_router() {
  Router router;
  const auto add = [&](const char* method, const char* pattern, const std::string& name) {
    router.add(method, pattern, Need::read,
               [name](const Request& /*request*/) { return named(name); });
  };
  add("GET", "/jobs/{id}", "job");
  add("POST", "/jobs/{id}/retry", "retry");
  add("GET", "/tags/{name}", "tag");
  add("GET", "/", "home");
  return router;
}

std::string answer(const Router& router, const char* method, const char* path) {
  const Router::Found found = router.find(method, path);
  return found.route == nullptr ? std::string() : found.route->handler({}).body;
}

TEST(RouterTest, a_pattern_matches_its_paths_only) {
  const Router router = small_router();
  EXPECT_EQ(answer(router, "GET", "/"), "home");
  EXPECT_EQ(answer(router, "GET", "/jobs/7"), "job");
  EXPECT_EQ(answer(router, "POST", "/jobs/7/retry"), "retry");
  for (const char* path : {"", "/jobs", "/jobs/", "/jobs//retry", "/jobs/7/", "/jobs/7/retry/x",
                           "//jobs/7", "jobs/7"}) {
    EXPECT_EQ(answer(router, "GET", path), "") << path;
  }
}

TEST(RouterTest, a_parameter_is_decoded_once) {
  const Router router = small_router();
  EXPECT_EQ(router.find("GET", "/tags/a%2Fb%2541").parameters.at("name"), "a/b%41");
  EXPECT_EQ(router.find("GET", "/tags/a%00b").route, nullptr);
  EXPECT_EQ(router.find("GET", "/tags/%ff").route, nullptr);
  EXPECT_EQ(router.find("GET", "/tags/%4").route, nullptr);
}

TEST(RouterTest, an_id_is_digits_that_64_bits_hold) {
  const Router router = small_router();
  EXPECT_EQ(router.find("GET", "/jobs/%37").parameters.at("id"), "7");
  for (const char* path :
       {"/jobs/abc", "/jobs/0", "/jobs/-7", "/jobs/7x", "/jobs/9223372036854775808"})
    EXPECT_FALSE(router.find("GET", path).is_known) << path;
}

TEST(RouterTest, a_method_that_is_not_there_is_told_from_a_path_that_is_not) {
  const Router router = small_router();
  EXPECT_EQ(answer(router, "HEAD", "/jobs/7"), "job");
  const Router::Found wrong = router.find("DELETE", "/jobs/7");
  EXPECT_TRUE(wrong.is_known);
  EXPECT_EQ(wrong.allowed, "GET, HEAD");
  EXPECT_FALSE(router.find("GET", "/nowhere").is_known);
}

TEST(ThreadPoolTest, the_thread_that_was_busy_last_takes_the_next_request) {
  constexpr std::size_t kThreads = 4;
  ThreadPool pool(kThreads, 0, [] { return LentSession(Database(ConnectOptions()), "0"); });
  std::set<const LentSession*> used;
  for (int i = 0; i < 100; ++i) {
    while (pool.idle() < kThreads) std::this_thread::yield();
    const auto done = std::make_shared<std::promise<const LentSession*>>();
    ASSERT_TRUE(pool.add([done](LentSession& session) { done->set_value(&session); }));
    used.insert(done->get_future().get());
  }
  EXPECT_EQ(used.size(), 1U);
}

TEST(ThreadPoolTest, requests_run_side_by_side_as_long_as_threads_are_free) {
  constexpr std::size_t kThreads = 4;
  ThreadPool pool(kThreads, 1, [] { return LentSession(Database(ConnectOptions()), "0"); });
  std::promise<void> end;
  const std::shared_future<void> ended = end.get_future().share();
  std::latch begun(kThreads);
  const ThreadPool::Work work = [&begun, ended](LentSession& /*session*/) {
    begun.count_down();
    ended.wait();
  };
  for (std::size_t i = 0; i < kThreads; ++i) {
    while (!pool.add(work)) std::this_thread::yield();
  }
  begun.wait();
  EXPECT_TRUE(pool.add([](LentSession& /*session*/) {}));
  EXPECT_FALSE(pool.add([](LentSession& /*session*/) {}));
  end.set_value();
}

TEST(FormTest, names_and_values_are_decoded) {
  const auto form = parse_form("a=1&b=x+y%26&a=2&&empty=&flag");
  ASSERT_TRUE(form);
  EXPECT_EQ(form->get("a"), "1");
  EXPECT_EQ(form->all("a"), (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(form->get("b"), "x y&");
  EXPECT_EQ(form->find("empty"), "");
  EXPECT_EQ(form->find("flag"), "");
  EXPECT_EQ(form->find("none"), std::nullopt);
  EXPECT_EQ(percent_decoded(percent_encoded("ü/ %+"), false), "ü/ %+");
}

TEST(FormTest, what_no_database_could_store_is_refused) {
  for (const char* text : {"a=%00", "a=%ff", "a=%zz", "a=%4", "%c3=1"}) {
    EXPECT_FALSE(parse_form(text)) << text;
  }
  std::string many;
  for (int i = 0; i < 1'001; ++i) many += "a=1&";
  EXPECT_FALSE(parse_form(many));
}

TEST(TokensTest, a_line_that_pulse_token_prints_is_understood) {
  const std::string secret = random_secret();
  const Token token{"ada", "operator", sha256(secret)};
  const auto parsed = parse_tokens("# people\n\n" + token_line(token) + "  # end");
  const auto* list = std::get_if<TokenList>(&parsed);
  ASSERT_NE(list, nullptr);
  ASSERT_EQ(list->size(), 1U);
  EXPECT_EQ(list->front().name, "ada");
  EXPECT_EQ(list->front().role, "operator");
  EXPECT_EQ(list->front().hash, token.hash);
  EXPECT_EQ(secret.size(), 64U);
  EXPECT_NE(secret, random_secret());
}

TEST(TokensTest, a_bad_line_is_named) {
  const std::string hash = "sha256:" + sha256("x");
  const std::vector<std::string> lines{"ada",
                                       "ada operator",
                                       "ada operator " + hash + " more",
                                       "ada operator " + sha256("x"),
                                       "ada operator sha256:abc",
                                       "ada operator sha256:" + std::string(64, 'G'),
                                       std::string(64, 'n') + " role " + hash};
  for (const std::string& line : lines) {
    const auto parsed = parse_tokens("\n" + line + "\n");
    const auto* problem = std::get_if<std::string>(&parsed);
    ASSERT_NE(problem, nullptr) << line;
    EXPECT_TRUE(problem->starts_with("line 2 ")) << *problem;
  }
  const auto twice = parse_tokens("a r " + hash + "\na r " + hash + "\n");
  EXPECT_TRUE(std::holds_alternative<std::string>(twice));
}

TEST(DigestTest, sha256_is_that_of_the_standard) {
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_TRUE(are_same("abc", "abc"));
  EXPECT_FALSE(are_same("abc", "abd"));
  EXPECT_FALSE(are_same("abc", "ab"));
}

HttpRequest getting(const char* target) {
  HttpRequest http;
  http.method = "GET";
  http.target = target;
  return http;
}

TEST(ReadRequestTest, what_cannot_be_understood_is_refused) {
  const auto status = [](HttpRequest http) {
    try {
      read_request(std::move(http));
      return 0U;
    } catch (const Failed& failed) {
      return failed.problem.status;
    }
  };
  const HttpRequest good = getting("/a?b=%20");
  EXPECT_EQ(read_request(good).query.get("b"), " ");
  EXPECT_EQ(read_request(good).path, "/a");
  EXPECT_EQ(status(getting("*")), 400U);
  EXPECT_EQ(status(getting("/?a=%00")), 400U);
  HttpRequest twice = good;
  twice.is_ambiguous = true;
  EXPECT_EQ(status(twice), 400U);
  HttpRequest coded = good;
  coded.is_coded = true;
  EXPECT_EQ(status(coded), 501U);
  HttpRequest large = good;
  large.is_too_large = true;
  EXPECT_EQ(status(large), 413U);
}

Router router_of_pages() {
  Router router;
  for (const char* path : {"/", "/jobs", "/jobs/{id}", "/queue", "/queues/pause"}) {
    router.add("GET", path, Need::read, [](const Request& /*request*/) { return named(""); });
  }
  return router;
}

std::string within(const char* prefix, const char* target, const char* taken = "") {
  HttpRequest http = getting(target);
  if (*taken != '\0') http.headers["x-forwarded-prefix"] = taken;
  const auto is_known = [router = router_of_pages()](std::string_view path) {
    return router.find("GET", path).is_known;
  };
  return target_within(prefix, is_known, http);
}

TEST(PrefixTest, a_path_that_came_as_it_was_loses_the_prefix) {
  EXPECT_EQ(within("", "/queue?name=x"), "/queue?name=x");
  EXPECT_EQ(within("/queue", "/queue"), "/");
  EXPECT_EQ(within("/queue", "/queue/"), "/");
  EXPECT_EQ(within("/queue", "/queue/jobs?task=a/b?c"), "/jobs?task=a/b?c");
  EXPECT_EQ(within("/queue", "/queue/queue?name=x"), "/queue?name=x");
  EXPECT_EQ(within("/a/b", "/a/b/jobs/7"), "/jobs/7");
  EXPECT_EQ(within("/queue", "/queue/nowhere"), "/nowhere");
  EXPECT_EQ(within("/jobs", "/jobs/jobs/7"), "/jobs/7");
}

TEST(PrefixTest, a_path_whose_prefix_the_proxy_took_stays) {
  EXPECT_EQ(within("/queue", "/"), "/");
  EXPECT_EQ(within("/queue", "/jobs/7"), "/jobs/7");
  EXPECT_EQ(within("/queue", "/queues/pause"), "/queues/pause") << "a name that begins so";
  EXPECT_EQ(within("/queue", "/queue?name=x"), "/queue?name=x") << "the page of a queue";
  EXPECT_EQ(within("/jobs", "/jobs/7"), "/jobs/7") << "there is no page /7";
  EXPECT_EQ(within("/jobs", "/jobs", "/jobs"), "/jobs") << "as the proxy tells";
  EXPECT_EQ(within("/jobs", "/jobs", "/other"), "/");
}

TEST(BodyTest, fields_are_checked_by_name_and_type) {
  const auto status = [](const std::string& body, const std::string& type = "application/json") {
    Request request;
    request.body = body;
    request.http.headers["content-type"] = type;
    try {
      read_body(request, {{"id", Is::id, true}, {"ids", Is::ids}, {"n", Is::integer}});
      return 0U;
    } catch (const Failed& failed) {
      return failed.problem.status;
    }
  };
  EXPECT_EQ(status(R"({"id": "7", "ids": ["1", "9223372036854775807"], "n": null})"), 0U);
  EXPECT_EQ(status(R"({"id": "7"})", "application/json; charset=utf-8"), 0U);
  EXPECT_EQ(status(R"({"id": "7"})", "text/plain"), 415U);
  EXPECT_EQ(status("{"), 400U);
  EXPECT_EQ(status(R"({"id": "7", "id": "8"})"), 400U);
  EXPECT_EQ(status(R"({"id": "7", "\u0069d": "8"})"), 400U) << "another spelling of the same name";
  for (const char* body :
       {"[]", "7", "null", "{}", R"({"id": 7})", R"({"id": "0"})", R"({"id": "-1"})",
        R"({"id": "9223372036854775808"})", R"({"id": "7", "ids": [1]})",
        R"({"id": "7", "n": 1.5})", R"({"id": "7", "other": 1})", R"({"id": null})"}) {
    EXPECT_EQ(status(body), 422U) << body;
  }
}

TEST(ProblemTest, a_refusal_has_its_status_and_says_what_to_do) {
  const auto status = [](const char* sqlstate) {
    return problem_of({sqlstate, "no", "", "", ""}).status;
  };
  EXPECT_EQ(status("PU001"), 409U);
  EXPECT_EQ(status("PU002"), 410U);
  EXPECT_EQ(status("PU004"), 422U);
  EXPECT_EQ(status("PU005"), 404U);
  EXPECT_EQ(status("PU008"), 503U);
  EXPECT_EQ(status("42501"), 403U);
  EXPECT_EQ(status("22P02"), 422U);
  EXPECT_EQ(status("57014"), 503U);
  EXPECT_EQ(status("XX000"), 500U);
  const Response response =
      problem_response(problem_of({"PU001", "lost", "it ended", "claim anew", ""}));
  EXPECT_EQ(response.type, "application/problem+json");
  const auto document = nlohmann::json::parse(response.body);
  EXPECT_EQ(document["sqlstate"], "PU001");
  EXPECT_EQ(document["status"], 409);
  EXPECT_EQ(document["detail"], "lost: it ended");
  EXPECT_EQ(document["hint"], "claim anew");
}

TEST(LiveTest, an_event_has_no_line_but_its_own) {
  EXPECT_EQ(event_text("", "a\nb\r\nc\rd"), "data: a\ndata: b\ndata: c\ndata: d\n\n");
  EXPECT_EQ(event_text("trouble", ""), "event: trouble\ndata: \n\n");
}

}  // namespace
}  // namespace pulse::console
