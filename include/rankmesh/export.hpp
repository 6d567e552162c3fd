// SPDX-License-Identifier: BSD-3-Clause
// Symbol visibility. The library exports only the symbols that are marked with RANKMESH_API.
#pragma once

#define RANKMESH_API __attribute__((visibility("default")))
