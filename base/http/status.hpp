// The status codes of HTTP (RFC 9110 §15, RFC 6585 §4) that our servers answer with.
#pragma once

namespace pulse::http_status {

inline constexpr unsigned kOk = 200;
inline constexpr unsigned kCreated = 201;
inline constexpr unsigned kNoContent = 204;
inline constexpr unsigned kSeeOther = 303;
inline constexpr unsigned kBadRequest = 400;
inline constexpr unsigned kUnauthorized = 401;
inline constexpr unsigned kForbidden = 403;
inline constexpr unsigned kNotFound = 404;
inline constexpr unsigned kMethodNotAllowed = 405;
inline constexpr unsigned kConflict = 409;
inline constexpr unsigned kGone = 410;
inline constexpr unsigned kContentTooLarge = 413;
inline constexpr unsigned kUnsupportedMediaType = 415;
inline constexpr unsigned kMisdirectedRequest = 421;
inline constexpr unsigned kUnprocessableContent = 422;
inline constexpr unsigned kTooManyRequests = 429;
inline constexpr unsigned kInternalError = 500;
inline constexpr unsigned kNotImplemented = 501;
inline constexpr unsigned kUnavailable = 503;

}  // namespace pulse::http_status
