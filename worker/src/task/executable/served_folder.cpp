#include "task/executable/served_folder.hpp"

#include <utility>

namespace pulse {

bool ServedFolder::check(TaskRefusal& refusal) {
  folder_ = TasksFolder::open(path_, refusal);
  return folder_.has_value();
}

TasksFolder::Listing ServedFolder::list() {
  TaskRefusal refusal;
  TasksFolder::Listing listing;
  if (check(refusal)) {
    listing = folder_->list();
  } else if (wish_ == Wish::named || refusal.kind != TaskRefusal::Kind::not_found) {
    listing.refusals.push_back(std::move(refusal));
  }
  for (const std::string& identifier : listing.identifiers) missing_.erase(identifier);
  return listing;
}

const std::string& ServedFolder::path() const { return folder_ ? folder_->path() : path_; }

std::optional<Executable> ServedFolder::find(std::string_view identifier, TaskRefusal& refusal) {
  const bool is_there = check(refusal);
  auto found = is_there ? folder_->find(identifier, refusal) : std::nullopt;
  const bool is_missing = !is_there || refusal.kind == TaskRefusal::Kind::not_found;
  if (!found && is_missing && !refusal.is_transient()) missing_.emplace(identifier);
  return found;
}

}  // namespace pulse
