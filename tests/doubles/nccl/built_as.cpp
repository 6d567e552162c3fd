// SPDX-License-Identifier: BSD-3-Clause
#include "built_as.hpp"

namespace fake {
extern const int built_as = FAKE_NCCL_BUILT_AS;
}
