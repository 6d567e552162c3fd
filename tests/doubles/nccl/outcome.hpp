// SPDX-License-Identifier: BSD-3-Clause
// A result code and the words for ncclGetLastError.
#pragma once

#include <nccl.h>

#include <cstdarg>
#include <cstdio>
#include <string>

namespace fake {

struct Outcome {
  ncclResult_t code = ncclSuccess;
  std::string text;

  bool ok() const { return code == ncclSuccess; }
};

[[gnu::format(printf, 2, 3)]] inline Outcome failed(ncclResult_t code, const char* format, ...) {
  char text[480];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return {code, text};
}

// Remembers the words of a failure for ncclGetLastError and gives its code.
ncclResult_t report(const Outcome& outcome);

}  // namespace fake
