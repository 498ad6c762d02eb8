#include "service/asked_nodes.hpp"

#include <utility>

#include "serve/problem.hpp"

namespace pulse::console {
namespace {

std::vector<std::string> names_of_sites(const std::vector<Site*>& sites) {
  std::vector<std::string> names;
  for (const Site* site : sites) names.push_back(site->node());
  return names;
}

// Returns why the task has no answer; empty for an answer.
std::string trouble_at(Site& site, LentSession& session, Access access,
                       const std::function<void(Database& database)>& task) {
  try {
    task(*session.lend(access, false));
    return {};
  } catch (const Refused& refused) {
    const Problem problem = problem_of(refused.error);
    return problem.title + ": " + problem.detail;
  } catch (const Unreachable& unreachable) {
    site.log_unreachable(unreachable.what());
    return kNotReached;
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

AskedNodes::AskedNodes(std::vector<Site*> sites)
    : sites_(std::move(sites)), inquiries_(names_of_sites(sites_)) {}

NodeOutcomes AskedNodes::ask(const Access& access, const NodeTask& task) {
  return inquiries_.ask([&](std::size_t number, const Inquiries::Ended& ended) {
    Site& site = *sites_[number];
    return site.quick().add([&site, number, access, task, ended](LentSession& session) {
      ended(trouble_at(site, session, access, [&](Database& database) { task(number, database); }));
    });
  });
}

}  // namespace pulse::console
