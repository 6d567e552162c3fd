// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace fake {

long long late_loads();
long long launched_blocks();

}  // namespace fake
