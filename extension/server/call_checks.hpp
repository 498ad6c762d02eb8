// Checks of a call: of the given names and values, which raise PU004, and of its transaction.
#pragma once

#include <initializer_list>

#include "server/postgres.hpp"

namespace pulse {

constexpr int kMaxName = 128;  // of tasks and queues, in characters
constexpr int kMaxKey = 512;
constexpr int kMaxFlags = 64;  // of a job

// For a function that is not strict: raises if one of these arguments is NULL.
void require_arguments(FunctionCallInfo fcinfo, std::initializer_list<int> numbers);

// Returns the text; in a database of encoding SQL_ASCII with a question mark for each byte that is
// no part of a character of UTF-8.
Datum readable(Datum value);

// Raises for a text that is not UTF-8, which only a database of encoding SQL_ASCII has.
void check_utf8(const char* what, const text* value);

// Raises for an empty name, for one of more than `max_length` characters, and for one that is not
// UTF-8.
void check_name(const char* what, text* name, int max_length);

// Raises as check_name(), and for a task name that could lead out of the tasks folder. Such a name
// is absolute, has an empty, "." or ".." component, or contains a backslash or a control character.
void check_identifier(text* identifier);

// Size limit of a JSON document in bytes: payloads, results and checkpoints pass whole between
// server, worker and task.
constexpr Size kMaxDocument = 64 * 1024 * 1024;

// Raises for a JSON document above kMaxDocument, and for a document that is not UTF-8.
void check_document(const char* what, Datum document);

// Raises for an interval below `lowest` or above ten years.
void check_duration(const char* what, Datum value, Datum lowest);

// Raises for a moment from which a task's expires_after cannot be counted.
void check_run_at(TimestampTz run_at);

// Raises unless lowest <= value <= highest.
void check_number(const char* what, int64 value, int64 lowest, int64 highest);

// Returns the elements of a text array. Raises for an array with more than one dimension, and for
// NULLs.
Datum* text_elements(ArrayType* array, const char* what, int* count);

// Warns in a transaction block of the client that this call counts only once the block commits.
void warn_in_block(const char* what);

}  // namespace pulse
