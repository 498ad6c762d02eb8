// Served folder: the tasks folder that a path leads to. A release may replace the folder at any
// time, as by a symbolic link that is set anew.
//
// The path is followed again whenever tasks are listed and whenever a task is started, and the
// folder found is checked each time. A task that was served and is not found may be in the middle
// of a deployment: the job has not been tried, and goes back.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "task/executable/tasks_folder.hpp"

namespace pulse {

class ServedFolder {
 public:
  enum class Wish { named, usual };  // usual: the default folder, which may be missing

  explicit ServedFolder(std::string path, Wish wish = Wish::named)
      : path_(std::move(path)), wish_(wish) {}

  // Follows the path again; on a refusal fills `refusal`.
  bool check(TaskRefusal& refusal);

  // The tasks served now. Where the folder cannot be listed, the tasks are those of the last list,
  // and `failure` says why; but a usual folder that never had a task need not exist.
  TasksFolder::Listing list();
  // The same while a task is missing: a folder that is away has no task, without a refusal.
  TasksFolder::Listing list_present();
  // The folder that was found last, with links resolved, or else the path.
  const std::string& path() const;
  bool is_there() const { return folder_.has_value(); }

  // As TasksFolder::find. A task is missing from now on if the file or a folder on the way does not
  // exist, or the folder is not safe; until list() finds the task, or forget_missing().
  std::optional<Executable> find(std::string_view identifier, TaskRefusal& refusal);

  const std::set<std::string>& missing() const { return missing_; }
  void forget_missing() { missing_.clear(); }

 private:
  const std::string path_;
  const Wish wish_;
  std::optional<TasksFolder> folder_;
  std::vector<std::string> listed_;  // the tasks of the last list
  std::set<std::string> missing_;
};

}  // namespace pulse
