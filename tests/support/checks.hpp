// SPDX-License-Identifier: BSD-3-Clause
// Checks that print the text that they searched, functions that catch an exception, and macros that
// skip test cases.
#pragma once

#include <doctest/doctest.h>

#include <ostream>
#include <stdexcept>
#include <string>

namespace rankmesh_test {

/// A text that a check searches. A check that fails prints the whole text.
struct SearchedText {
  std::string text;
};

/// The part that a check looks for.
struct Part {
  std::string part;
};

inline bool has_part(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
inline bool operator==(const SearchedText& searched, const Part& part) {
  return has_part(searched.text, part.part);
}
inline std::ostream& operator<<(std::ostream& out, const SearchedText& searched) {
  return out << "the text \"" << searched.text << '"';
}
inline std::ostream& operator<<(std::ostream& out, const Part& part) {
  return out << "a text with \"" << part.part << '"';
}

/// Runs an action that must throw `Expected`, and returns the exception. Without it the test case
/// ends, and in an MPI job the whole job.
template <class Expected, class Action>
Expected thrown_by(Action&& action) {
  try {
    action();
  } catch (const Expected& error) {
    return error;
  }
  throw std::logic_error{"no exception was thrown"};
}

/// Why the test case that runs now was skipped; empty if it was not.
inline std::string skip_reason;

}  // namespace rankmesh_test

/// Checks that a text contains a part.
#define CHECK_CONTAINS(text, part) \
  CHECK(::rankmesh_test::SearchedText{text} == ::rankmesh_test::Part{part})
/// Checks that a text does not contain a part.
#define CHECK_LACKS(text, part) \
  CHECK(::rankmesh_test::SearchedText{text} != ::rankmesh_test::Part{part})

/// Ends the test case and counts it as skipped, unless the condition holds. The condition must be
/// the same on all ranks.
#define SKIP_UNLESS(condition, reason)         \
  do {                                         \
    if (!(condition)) {                        \
      ::rankmesh_test::skip_reason = (reason); \
      return;                                  \
    }                                          \
  } while (false)

/// Skips the test case at fewer ranks.
#define NEEDS_RANKS(n) SKIP_UNLESS(::rankmesh_test::size() >= (n), "needs " #n " ranks or more")
/// Skips the test case at more ranks. It is for cases that wait for deadlines: few ranks wait in
/// the same way as many do.
#define NEEDS_AT_MOST_RANKS(n)                \
  SKIP_UNLESS(::rankmesh_test::size() <= (n), \
              "needs at most " #n " ranks, because it waits for deadlines")
/// Skips the test case unless the number of ranks is a multiple of `n`.
#define NEEDS_MULTIPLE_OF(n) \
  SKIP_UNLESS(::rankmesh_test::size() % (n) == 0, "needs a multiple of " #n " ranks")
