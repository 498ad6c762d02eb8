// Known shards: which shard each node gives ids of, as the node has told. A node that does not
// answer can have a job only if the shard of the job's id is the shard of the node, or not known.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "base/postgres/query_result.hpp"
#include "base/text/parse_number.hpp"

namespace pulse::console {

class KnownShards {
 public:
  // `overviews`: rows with `node` and `shard`.
  void note(const QueryResult& overviews) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < overviews.size(); ++i) {
      const auto shard = overviews[i].optional_integer("shard");
      if (shard) shards_[overviews[i].text("node")] = *shard;
    }
  }

  bool may_have(const std::string& node, const std::string& id) {
    constexpr int kBitsBelow = 44;  // of an id, below the shard
    const std::lock_guard lock(mutex_);
    const auto known = shards_.find(node);
    const auto number = parse_number<std::int64_t>(id);
    return known == shards_.end() || !number || *number >> kBitsBelow == known->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::int64_t> shards_;  // guarded by mutex_
};

}  // namespace pulse::console
