// SPDX-License-Identifier: BSD-3-Clause
// The version that a build of the library reports; each build of it has its own.
#pragma once

namespace fake {
extern const int built_as;
}
