// SPDX-License-Identifier: BSD-3-Clause
// An environment variable for one test.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace rankmesh_test {

/// Restores an environment variable at the end of its scope.
class ScopedVariable {
 public:
  explicit ScopedVariable(const char* name) : name_{name} {
    if (const char* text = std::getenv(name)) before_ = text;
  }
  ScopedVariable(const char* name, const char* text) : ScopedVariable{name} { set(text); }
  ~ScopedVariable() {
    if (before_)
      set(before_->c_str());
    else
      clear();
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

  void set(const char* text) const { setenv(name_, text, 1); }
  void clear() const { unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace rankmesh_test
