// SPDX-License-Identifier: BSD-3-Clause
// Precompiled for speed alone: every file includes what it uses.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>
