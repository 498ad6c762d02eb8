// Addresses within this server: a path that stands in the sources, with parts and a query that are
// encoded. So none leads elsewhere.
//
// A proxy may have put the server below a path of its own, the prefix. Routes, and the locations of
// redirects, are without the prefix; addresses on a page have the prefix.
//
// A server of several databases has the pages of each database, a node, below /n/NAME: behind the
// prefix, and in front of the path as the routes of the node spell it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pulse::console {

// A path as written in the sources.
class Path {
 public:
  consteval Path(const char* text) : text_(text) {
    if (text_.empty() || text_[0] != '/' || text_.starts_with("//")) throw "no path of this server";
  }
  std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

// Constant once the first page is made: https://ops.example.com/queue has the prefix /queue.
void set_url_prefix(std::string prefix);

// The path of the pages of a node: /n/NAME; empty for pages that are of no node. A NAME has no
// character that an address encodes.
std::string path_of_node(std::string_view node);

// While the object lives, the addresses that this thread makes lead to pages of the node.
class AddressesOfNode {
 public:
  explicit AddressesOfNode(std::string_view node);
  ~AddressesOfNode();
  AddressesOfNode(const AddressesOfNode&) = delete;
  AddressesOfNode& operator=(const AddressesOfNode&) = delete;

 private:
  const std::string before_;
};

class Url {
 public:
  explicit Url(Path path) : path_(path.text()) {}

  // One part more: the id of a job, the name of an action.
  Url part(std::string_view text) const;
  // A parameter more; none with an empty value.
  Url with(std::string_view name, std::string_view value) const;
  // The same page of this node, or of no node, whatever node the thread makes addresses for.
  Url at_node(std::string_view node) const;

  // A place on the page itself.
  static Url to_place(const char* id);

  // The address as a route spells it.
  std::string text() const { return std::string(path_) + rest_ + query_; }
  // The address as a browser asks for it: with the prefix.
  std::string address() const;

 private:
  Url() = default;

  std::string_view path_;
  std::string rest_;
  std::string query_;
  std::optional<std::string> node_path_;  // absent: as the thread makes addresses
};

}  // namespace pulse::console
