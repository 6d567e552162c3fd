// SPDX-License-Identifier: BSD-3-Clause
// Symbol visibility: only symbols with RANKMESH_API are exported.
#pragma once

#define RANKMESH_API __attribute__((visibility("default")))
