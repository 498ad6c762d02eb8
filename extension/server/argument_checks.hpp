// What may be a name, and the refusal that every layer gives for what may not: PU004.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

constexpr int kMaxName = 128;  // of tasks and queues, in characters
constexpr int kMaxKey = 512;

// Raises for a name that is empty or has more than that many characters.
void check_name(const char* what, text* name, int longest);

// Raises also for a task name that could lead out of the tasks folder: absolute, with an empty, "."
// or ".." component, a backslash or a control character.
void check_identifier(text* identifier);

// Payloads, results and checkpoints travel whole between server, worker and task.
constexpr Size kMaxDocument = 64 * 1024 * 1024;

// Raises for a JSON document above kMaxDocument.
void check_document(const char* what, Datum document);

// Raises for an interval below the lowest one or above ten years.
void check_duration(const char* what, Datum value, Datum lowest);

// Raises unless lowest <= value <= highest.
void check_number(const char* what, int64 value, int64 lowest, int64 highest);

// The elements of an array of texts. Raises for more than one dimension and for NULLs.
Datum* text_elements(ArrayType* array, const char* what, int* count);

}  // namespace pulse
