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
  const bool is_there = check(refusal);
  const bool need_not_exist =
      wish_ == Wish::usual && listed_.empty() && refusal.kind == TaskRefusal::Kind::not_found;
  if (is_there) {
    listing = folder_->list();
  } else if (!need_not_exist) {
    listing.failure = std::move(refusal);
  }
  if (listing.failure) {
    listing.identifiers = listed_;
    return listing;
  }
  for (const std::string& identifier : listing.identifiers) missing_.erase(identifier);
  listed_ = listing.identifiers;
  return listing;
}

TasksFolder::Listing ServedFolder::list_present() {
  TasksFolder::Listing listing = list();
  if (!listing.failure || listing.failure->is_transient()) return listing;
  listed_.clear();
  return {};
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
