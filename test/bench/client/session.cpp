#include "session.hpp"

namespace bench {
namespace {

constexpr int kText = 0;
constexpr int kBinary = 1;
// Object ids of built-in types are fixed (pg_type.dat).
constexpr Oid kBool = 16, kInt8 = 20, kInt2 = 21, kInt4 = 23, kXid = 28, kLsn = 3220;

std::uint64_t from_network(const char* bytes, int length) {
  std::uint64_t value = 0;
  for (int i = 0; i < length; i++) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

void put(std::string* out, std::uint64_t value, int length) {
  for (int shift = (length - 1) * 8; shift >= 0; shift -= 8)
    out->push_back(static_cast<char>(value >> shift));
}

// The wire format of a one-dimensional array: dimensions, nulls, type, length, lower bound,
// elements.
std::string encode(const Ids& ids) {
  std::string out;
  out.reserve(20 + ids.size() * 12);
  put(&out, ids.empty() ? 0 : 1, 4);
  put(&out, 0, 4);
  put(&out, kInt8, 4);
  if (!ids.empty()) {
    put(&out, ids.size(), 4);
    put(&out, 1, 4);
  }
  for (std::int64_t id : ids) {
    put(&out, 8, 4);
    put(&out, static_cast<std::uint64_t>(id), 8);
  }
  return out;
}

}  // namespace

// Values as libpq wants them: arrays in binary, the rest as text, which fits every width of
// integer.
struct Session::Encoded {
  explicit Encoded(const Values& values) {
    for (const Value& value : values) {
      if (const auto* number = std::get_if<std::int64_t>(&value)) {
        bytes.push_back(std::to_string(*number));
      } else if (const auto* ids = std::get_if<Ids>(&value)) {
        bytes.push_back(encode(*ids));
      } else if (const auto* text = std::get_if<std::string>(&value)) {
        bytes.push_back(*text);
      } else {
        bytes.emplace_back();
      }
      formats.push_back(std::holds_alternative<Ids>(value) ? kBinary : kText);
    }
    for (std::size_t i = 0; i < values.size(); i++) {
      bool is_null = std::holds_alternative<std::monostate>(values[i]);
      pointers.push_back(is_null ? nullptr : bytes[i].c_str());
      lengths.push_back(static_cast<int>(bytes[i].size()));
    }
  }
  int count() const { return static_cast<int>(pointers.size()); }

  std::vector<std::string> bytes;
  std::vector<const char*> pointers;
  std::vector<int> lengths;
  std::vector<int> formats;
};

std::int64_t Rows::number(int row, int column) const {
  const char* bytes = PQgetvalue(result_.get(), row, column);
  int length = PQgetlength(result_.get(), row, column);
  std::uint64_t bits = from_network(bytes, length);
  switch (PQftype(result_.get(), column)) {
    case kInt2: return static_cast<std::int16_t>(bits);
    case kInt4: return static_cast<std::int32_t>(bits);
    case kBool:
    case kInt8:
    case kXid:
    case kLsn: return static_cast<std::int64_t>(bits);
    default: throw std::logic_error("a column that is no number");
  }
}

std::string_view Rows::text(int row, int column) const {
  return {PQgetvalue(result_.get(), row, column),
          static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
}

Session::Session(const std::string& application_name)
    : connection_(PQconnectdb(("application_name='" + application_name + "'").c_str()), PQfinish) {
  if (PQstatus(connection_.get()) != CONNECTION_OK) lose();
  // Notices tell of waits that end for a sweep and the like: nothing that a benchmark reads.
  PQsetNoticeReceiver(
      connection_.get(), [](void*, const PGresult*) {}, nullptr);
}

void Session::script(const std::string& sql) {
  PQclear(checked(PQexec(connection_.get(), sql.c_str())));
}

Rows Session::run(const std::string& sql, const Values& values) {
  Encoded encoded(values);
  const std::string& name = name_of(sql);
  return Rows(checked(PQexecPrepared(connection_.get(), name.c_str(), encoded.count(),
                                     encoded.pointers.data(), encoded.lengths.data(),
                                     encoded.formats.data(), kBinary)));
}

std::int64_t Session::number(const std::string& sql, const Values& values) {
  Rows rows = run(sql, values);
  if (rows.count() == 0 || rows.is_null(0, 0)) throw std::runtime_error("no answer to: " + sql);
  return rows.number(0, 0);
}

std::string Session::text(const std::string& sql, const Values& values) {
  Rows rows = run(sql, values);
  if (rows.count() == 0) throw std::runtime_error("no answer to: " + sql);
  return std::string(rows.text(0, 0));
}

void Session::prepare(const std::string& sql) { name_of(sql); }

void Session::start_pipeline() { PQenterPipelineMode(connection_.get()); }

void Session::send(const std::string& sql, const Values& values) {
  Encoded encoded(values);
  if (!PQsendQueryPrepared(connection_.get(), prepared_.at(sql).c_str(), encoded.count(),
                           encoded.pointers.data(), encoded.lengths.data(), encoded.formats.data(),
                           kBinary))
    lose();
}

void Session::flush() {
  if (!PQpipelineSync(connection_.get())) lose();
}

Rows Session::next_rows() {
  Rows rows(checked(PQgetResult(connection_.get())));
  PGresult* end = PQgetResult(connection_.get());
  if (end) {
    PQclear(end);
    throw std::logic_error("a statement with two results");
  }
  return rows;
}

void Session::end_of_flush() {
  PGresult* result = PQgetResult(connection_.get());
  bool synced = PQresultStatus(result) == PGRES_PIPELINE_SYNC;
  PQclear(result);
  if (!synced) lose();
}

void Session::stop_pipeline() {
  if (!PQexitPipelineMode(connection_.get())) throw std::logic_error("the pipeline is not empty");
}

const std::string& Session::name_of(const std::string& sql) {
  auto found = prepared_.find(sql);
  if (found != prepared_.end()) return found->second;
  std::string name = std::to_string(prepared_.size());
  PQclear(checked(PQprepare(connection_.get(), name.c_str(), sql.c_str(), 0, nullptr)));
  return prepared_.emplace(sql, name).first->second;
}

PGresult* Session::checked(PGresult* result) {
  ExecStatusType status = PQresultStatus(result);
  if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) return result;
  const char* code = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : nullptr;
  std::string sqlstate = code ? code : "";
  std::string message = result ? PQresultErrorMessage(result) : "";
  PQclear(result);
  // Class 57P is the server going away; the connection follows.
  if (sqlstate.empty() || sqlstate.starts_with("57P") ||
      PQstatus(connection_.get()) == CONNECTION_BAD)
    lose();
  throw SqlError(sqlstate, message);
}

void Session::lose() { throw ConnectionLost(PQerrorMessage(connection_.get())); }

}  // namespace bench
